// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "reduce.cuh"
#include "scratch.hpp"
#include "suppression.hpp"

namespace hpcai::kernels {

// These functions select the smallest of many unique 64-bit keys with one block of kSelectThreads
// threads. All threads must call them; then all can read the results without a barrier.
inline constexpr unsigned kSelectThreads = 1024;
inline constexpr int kMaxSorted = 4096;
inline constexpr int kChunk = 16384;  // keys per block if several blocks search one list

/// The inclusive prefix sum of the values of the threads.
__device__ inline unsigned prefix_sum(unsigned value) {
    __shared__ unsigned warp_sums[kSelectThreads / kWarp];
    const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    for (unsigned distance = 1; distance < kWarp; distance *= 2) {
        const unsigned before = __shfl_up_sync(kAllLanes, value, distance);
        if (lane >= distance) value += before;
    }
    if (lane == kWarp - 1) warp_sums[warp] = value;
    __syncthreads();
    for (unsigned other = 0; other < warp; ++other) value += warp_sums[other];
    __syncthreads();
    return value;
}

/// Returns a threshold. Exactly `limit` (above 0) of the keys key_at(i), i < count, are less than
/// or equal to it; all of them if there are fewer. Ignores kNoKey. Radix selection by 10 bits.
template <typename KeyAt>
__device__ std::uint64_t select_threshold(const KeyAt& key_at, int count, int limit) {
    constexpr int kDigitBits = 10;
    static_assert(1 << kDigitBits == kSelectThreads);  // one thread per digit
    __shared__ unsigned histogram[kSelectThreads];
    __shared__ unsigned digit, below_digit, in_digit;
    std::uint64_t prefix = 0, known_bits = 0;  // of the threshold, and a mask of its known bits
    auto remaining = static_cast<unsigned>(limit);
    for (int shift = 64 - kDigitBits;; shift = shift > kDigitBits ? shift - kDigitBits : 0) {
        histogram[threadIdx.x] = 0;
        if (threadIdx.x == 0) in_digit = 0;
        __syncthreads();
        for (int i = static_cast<int>(threadIdx.x); i < count; i += kSelectThreads) {
            const std::uint64_t key = key_at(i);
            if (key == kNoKey || (key & known_bits) != prefix) continue;
            atomicAdd(&histogram[key >> shift & (kSelectThreads - 1)], 1u);
        }
        __syncthreads();
        const unsigned own = histogram[threadIdx.x], reached = prefix_sum(own);
        if (reached >= remaining && reached - own < remaining) {
            digit = threadIdx.x;
            below_digit = reached - own;
            in_digit = own;
        }
        __syncthreads();
        if (in_digit == 0) return kNoKey - 1;  // fewer than `limit` keys
        prefix |= std::uint64_t{digit} << shift;
        known_bits = ~std::uint64_t{0} << shift;
        remaining -= below_digit;
        if (in_digit == remaining || shift == 0) return prefix | ~known_bits;
        __syncthreads();
    }
}

/// Calls take(slot, key) for the `limit` smallest keys in any order, and returns their number.
template <typename KeyAt, typename Take>
__device__ int select_smallest(const KeyAt& key_at, int count, int limit, const Take& take) {
    __shared__ int taken;
    if (limit <= 0) return 0;
    const std::uint64_t threshold = select_threshold(key_at, count, limit);
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

/// Sorts `count` keys in shared memory in ascending order, and pads them with kNoKey to the next
/// power of two, up to kMaxSorted. Batcher's bitonic sort.
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

/// Writes the `limit` smallest keys to `keys` in ascending order. Returns their number.
template <typename KeyAt>
__device__ int sorted_smallest(const KeyAt& key_at, int count, int limit, std::uint64_t* keys) {
    const int taken = select_smallest(key_at, count, limit,
                                      [&](int slot, std::uint64_t key) { keys[slot] = key; });
    sort(keys, taken);
    return taken;
}

}  // namespace hpcai::kernels
