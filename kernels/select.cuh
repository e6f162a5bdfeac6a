// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "rank_key.hpp"
#include "reduce.cuh"

/// Selection of the smallest of many unique 64-bit keys in one block of kSelectThreads threads, all
/// of which must call these functions. Then all can read the results without a barrier.
namespace hpcai::kernels {

inline constexpr unsigned kSelectThreads = 1024;
inline constexpr int kMaxSorted = 4096;
inline constexpr int kChunk = 16384;  // keys for each block where several blocks share a search

/// The inclusive prefix sum of the values of the threads.
__device__ inline unsigned running_sum(unsigned value) {
    __shared__ unsigned of_warp[kSelectThreads / kWarp];
    const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    for (unsigned distance = 1; distance < kWarp; distance *= 2) {
        const unsigned before = __shfl_up_sync(kAllLanes, value, distance);
        if (lane >= distance) value += before;
    }
    if (lane == kWarp - 1) of_warp[warp] = value;
    __syncthreads();
    for (unsigned other = 0; other < warp; ++other) value += of_warp[other];
    __syncthreads();
    return value;
}

/// A threshold: exactly `most` (above 0) of the keys key_at(i), i < count, are not above it, or all
/// if there are fewer. kNoKey does not count. Radix selection, 10 bits at a time.
template <typename KeyAt>
__device__ std::uint64_t threshold_of(const KeyAt& key_at, int count, int most) {
    constexpr int kDigitBits = 10;
    static_assert(1 << kDigitBits == kSelectThreads);  // one digit for each thread
    __shared__ unsigned digits[kSelectThreads];
    __shared__ unsigned chosen, below, with;
    std::uint64_t prefix = 0, known = 0;  // of the key, and a mask of its known bits
    auto left = static_cast<unsigned>(most);
    for (int shift = 64 - kDigitBits;; shift = shift > kDigitBits ? shift - kDigitBits : 0) {
        digits[threadIdx.x] = 0;
        if (threadIdx.x == 0) with = 0;
        __syncthreads();
        for (int i = static_cast<int>(threadIdx.x); i < count; i += kSelectThreads) {
            const std::uint64_t key = key_at(i);
            if (key == kNoKey || (key & known) != prefix) continue;
            atomicAdd(&digits[key >> shift & (kSelectThreads - 1)], 1u);
        }
        __syncthreads();
        const unsigned here = digits[threadIdx.x], reached = running_sum(here);
        if (reached >= left && reached - here < left) {
            chosen = threadIdx.x;
            below = reached - here;
            with = here;
        }
        __syncthreads();
        if (with == 0) return kNoKey - 1;  // fewer than `most`
        prefix |= std::uint64_t{chosen} << shift;
        known = ~std::uint64_t{0} << shift;
        left -= below;
        if (with == left || shift == 0) return prefix | ~known;
        __syncthreads();
    }
}

/// Calls take(place, key) for the `most` smallest keys in any order. Returns their number.
template <typename KeyAt, typename Take>
__device__ int select_smallest(const KeyAt& key_at, int count, int most, const Take& take) {
    __shared__ int taken;
    if (most <= 0) return 0;
    const std::uint64_t threshold = threshold_of(key_at, count, most);
    __syncthreads();
    if (threadIdx.x == 0) taken = 0;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kSelectThreads) {
        const std::uint64_t key = key_at(i);
        if (key != kNoKey && key <= threshold) take(atomicAdd(&taken, 1), key);
    }
    __syncthreads();
    return taken;
}

/// Sorts `count` keys in shared memory, which has room for kMaxSorted, in ascending order and pads
/// them with kNoKey to the next power of two. Batcher's bitonic sort.
__device__ inline void sort(std::uint64_t* keys, int count) {
    const int thread = static_cast<int>(threadIdx.x), threads = kSelectThreads;
    int size = 1;
    while (size < count) size *= 2;
    for (int i = count + thread; i < size; i += threads) keys[i] = kNoKey;
    __syncthreads();
    for (int run = 2; run <= size; run *= 2) {
        for (int distance = run / 2; distance > 0; distance /= 2) {
            for (int pair = thread; pair < size / 2; pair += threads) {
                const int low = 2 * pair - (pair & (distance - 1)), high = low + distance;
                const std::uint64_t a = keys[low], b = keys[high];
                if ((a > b) == ((low & run) == 0)) {
                    keys[low] = b;
                    keys[high] = a;
                }
            }
            __syncthreads();
        }
    }
}

/// Writes the keys that select_smallest() takes to `keys`, sorted. Returns their number.
template <typename KeyAt>
__device__ int sorted_smallest(const KeyAt& key_at, int count, int most, std::uint64_t* keys) {
    const int taken = select_smallest(key_at, count, most,
                                      [&](int place, std::uint64_t key) { keys[place] = key; });
    sort(keys, taken);
    return taken;
}

}  // namespace hpcai::kernels
