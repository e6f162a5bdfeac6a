// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <vector>

#include <elements.cuh>
#include <gtest/gtest.h>
#include <reduce.cuh>

#include <hpcai/base/error.hpp>

namespace hpcai::kernels {
namespace {

__global__ void write_places(unsigned* to) {
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    to[block * blockDim.x + threadIdx.x] = block * 1000 + threadIdx.x;
}

TEST(Simt, RunsEveryThreadOfEveryBlockOnce) {
    std::vector<unsigned> places(3 * 2 * 40, 7);
    launch(write_places, {.blocks_x = 3, .blocks_y = 2, .threads = 40}, places.data());
    for (unsigned i = 0; i < places.size(); ++i) {
        EXPECT_EQ(places[i], i / 40 * 1000 + i % 40);
    }
}

template <bool kBarrier>
__global__ void reverse(const int* from, int* to) {
    __shared__ int kept[128];
    const unsigned last = blockDim.x - 1;
    kept[threadIdx.x] = from[blockIdx.x * blockDim.x + threadIdx.x];
    if constexpr (kBarrier) __syncthreads();
    to[blockIdx.x * blockDim.x + threadIdx.x] = kept[last - threadIdx.x];
}

TEST(Simt, ShowsThatABarrierIsMissing) {
    std::vector<int> from(4 * 128), to(from.size());
    std::iota(from.begin(), from.end(), 0);
    const auto reversed = [&] {
        for (int i = 0; i < 4 * 128; ++i) {
            if (to[static_cast<std::size_t>(i)] != i / 128 * 128 + 127 - i % 128) return false;
        }
        return true;
    };
    launch(reverse<true>, {.blocks_x = 4, .threads = 128}, from.data(), to.data());
    EXPECT_TRUE(reversed());
    launch(reverse<false>, {.blocks_x = 4, .threads = 128}, from.data(), to.data());
    EXPECT_FALSE(reversed());
}

__global__ void reduce(const double* from, double* sum, double* maximum) {
    const double value = from[threadIdx.x];
    sum[threadIdx.x] = reduce_block(value, 0.0, Sum{});
    maximum[threadIdx.x] = reduce_block(value, -1e9, Maximum{});
}

TEST(Simt, ReducesABlockAtEveryThread) {
    for (const unsigned threads : {32u, 96u, 1024u}) {
        std::vector<double> from(threads), sum(threads), maximum(threads);
        std::iota(from.begin(), from.end(), -40.0);
        launch(reduce, {.threads = threads}, from.data(), sum.data(), maximum.data());
        const double want = std::accumulate(from.begin(), from.end(), 0.0);
        EXPECT_EQ(sum, std::vector<double>(threads, want));
        EXPECT_EQ(maximum, std::vector<double>(threads, from.back()));
    }
}

__global__ void exchange(unsigned* ballot, int* down, int* from_three) {
    const int value = static_cast<int>(threadIdx.x);
    ballot[threadIdx.x] = __ballot_sync(kAllLanes, value % 3 == 0);
    down[threadIdx.x] = __shfl_down_sync(kAllLanes, value, 4);
    from_three[threadIdx.x] = __shfl_sync(kAllLanes, value, 3);
}

TEST(Simt, ExchangesWithinAWarp) {
    std::vector<unsigned> ballot(64);
    std::vector<int> down(64), from_three(64);
    launch(exchange, {.threads = 64}, ballot.data(), down.data(), from_three.data());
    for (int i = 0; i < 64; ++i) {
        const auto at = static_cast<std::size_t>(i);
        EXPECT_EQ(ballot[at], i < 32 ? 0x49249249u : 0x92492492u);
        EXPECT_EQ(down[at], i % 32 < 28 ? i + 4 : i);
        EXPECT_EQ(from_three[at], i / 32 * 32 + 3);
    }
}

__global__ void count(unsigned* counter) {
    atomicAdd(counter, 1);
}

TEST(Simt, AddsAtomically) {
    unsigned counter = 5;
    launch(count, {.blocks_x = 2, .threads = 33}, &counter);
    EXPECT_EQ(counter, 71u);
}

__global__ void lost_lane() {
    if (threadIdx.x != 7) __shfl_xor_sync(kAllLanes, 1, 1);
}
__global__ void wrong_mask() {
    __ballot_sync(0xffu, true);
}

TEST(Simt, RejectsBarriersOutOfStep) {
    EXPECT_THROW(launch(lost_lane, {.threads = 32}), Error);
    EXPECT_THROW(launch(wrong_mask, {.threads = 32}), Error);
    EXPECT_THROW(launch(write_places, {.threads = 2048}, nullptr), Error);
}

template <typename T>
void expect_same_after_a_round(float tolerance) {
    alignas(16) T from[kLanes<T>], to[kLanes<T>];
    for (int i = 0; i < kLanes<T>; ++i) from[i] = from_float<T>(0.3f * static_cast<float>(i) - 1);
    const auto numbers = Vector<T>::load(from);
    numbers.store(to);
    for (int i = 0; i < kLanes<T>; ++i) {
        EXPECT_NEAR(numbers.lane[i], 0.3f * static_cast<float>(i) - 1, tolerance);
        EXPECT_EQ(to_float(to[i]), numbers.lane[i]);
    }
}

TEST(Vector, LoadsAndStoresEveryType) {
    expect_same_after_a_round<float>(1e-7f);
    expect_same_after_a_round<__half>(1e-3f);
    expect_same_after_a_round<__nv_bfloat16>(8e-3f);
}

}  // namespace
}  // namespace hpcai::kernels
