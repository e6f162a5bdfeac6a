// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "batch_norm.hpp"
#include "elements.cuh"
#include "reduce.cuh"

/// The distribution of (spans, pixels, C) over threads. A thread keeps `kWidth` channels and
/// iterates over pixels of one span. Adjacent threads of a block have adjacent channels, so that a
/// warp reads whole cache lines. Adjacent blocks have adjacent channels, so that the grid sweeps
/// memory from one end to the other.
namespace hpcai::kernels::batch_norm {

inline constexpr int kWide = 8;  // channels of a thread if 8 divides C; one byte of the mask
inline constexpr unsigned kThreads = 256;
inline constexpr int kBlocksPerProcessor = 3;
// Resident blocks of an H100 or H200. All GPUs use this number, so that the order of sums is fixed.
inline constexpr std::int64_t kBlocks = 132 * kBlocksPerProcessor;

struct Tiling {
    std::int64_t pixels = 0;  // of a span
    int channels = 0;
    int columns = 0;  // threads of a block over channels
    int rows = 0;     // threads of a block over pixels
    int tiles = 0;    // blocks over channels
    int chunks = 0;   // blocks over the pixels of a span
};

inline bool is_wide(const BatchNormShape& shape) {
    return shape.channels % kWide == 0;
}

inline Tiling tiling_of(const BatchNormShape& shape, int width) {
    constexpr std::int64_t kMinPixelsPerThread = 4;  // approximately
    const std::int64_t all_columns = divide_up(shape.channels, width);
    const std::int64_t tiles = divide_up(all_columns, kWarp);
    const std::int64_t columns = divide_up(all_columns, tiles);
    const std::int64_t rows = kThreads / columns;
    const std::int64_t useful = divide_up(shape.pixels, rows * kMinPixelsPerThread);
    const std::int64_t chunks =
        std::clamp<std::int64_t>(kBlocks / (tiles * shape.spans), 1, useful);
    return {shape.pixels,           static_cast<int>(shape.channels), static_cast<int>(columns),
            static_cast<int>(rows), static_cast<int>(tiles),          static_cast<int>(chunks)};
}
inline Tiling tiling_of(const BatchNormShape& shape) {
    return tiling_of(shape, is_wide(shape) ? kWide : 1);
}

inline Grid grid_of(const BatchNormShape& shape, const Tiling& tiling, Stream stream) {
    return {.blocks_x = tiling.tiles * tiling.chunks,
            .blocks_y = shape.spans,
            .threads = kThreads,
            .stream = stream};
}

/// The number of partial sums, (spans, chunks, sums, C), at the start of the workspace. Pivots
/// (spans, C), or coefficients (3, spans, C) of each norm, follow.
inline std::int64_t partial_floats(const BatchNormShape& shape, int sums = 2) {
    return shape.spans * tiling_of(shape).chunks * sums * shape.channels;
}

/// Enqueues the partial sums of the differences of x from the first pixel of the span and of their
/// squares. Also stores the first pixels as pivots.
void sum_differences(const BatchNormShape& shape, const void* x, float* workspace, Stream stream);
/// Enqueues the partial sums of g, the gradient of the ReLU's input, and of g * (x - mean).
void sum_gradients(const BatchNormShape& shape, const BatchNormGradientArguments& arguments,
                   Stream stream);

/// kWidth adjacent elements as stored in memory. f16 and bf16 take half the registers of fp32.
template <typename T, int kWidth>
struct Raw {
    uint4 part[kWidth / kLanes<T>];

    __device__ static Raw load(const T* from) {
        Raw raw;
        for (int i = 0; i < kWidth / kLanes<T>; ++i) {
            raw.part[i] = reinterpret_cast<const uint4*>(from)[i];
        }
        return raw;
    }
    __device__ Pack<kWidth> numbers() const {
        return kernels::load<kWidth>(reinterpret_cast<const T*>(part));
    }
};
template <typename T>
struct Raw<T, 1> {
    T element;

    __device__ static Raw load(const T* from) { return {*from}; }
    __device__ Pack<1> numbers() const { return {{to_float(element)}}; }
};

/// Pixels that a thread loads at once, limited by registers. Simple kernels load twice as many.
template <typename T>
inline constexpr int kInFlight = sizeof(T) == 4 ? 1 : 2;

/// The elements of a thread: kWidth channels of some pixels of one span.
template <int kWidth>
struct TileThread {
    int tile, chunk, column, row;
    int channel;         // the first of kWidth
    std::int64_t pixel;  // the first in the span
    std::int64_t step;   // from a pixel to the next
    bool is_active;      // false: the thread has no elements and only joins barriers

    __device__ explicit TileThread(const Tiling& tiling)
        : tile(static_cast<int>(blockIdx.x) % tiling.tiles),
          chunk(static_cast<int>(blockIdx.x) / tiling.tiles),
          column(static_cast<int>(threadIdx.x) % tiling.columns),
          row(static_cast<int>(threadIdx.x) / tiling.columns),
          channel((tile * tiling.columns + column) * kWidth),
          pixel(static_cast<std::int64_t>(chunk) * tiling.rows + row),
          step(static_cast<std::int64_t>(tiling.chunks) * tiling.rows),
          is_active(row < tiling.rows && channel < tiling.channels) {}

    /// Calls use(pixel, load(pixel)) for all pixels of the thread, with kUnroll loads in flight.
    template <int kUnroll, typename Load, typename Use>
    __device__ void for_each_pixel(std::int64_t pixels, const Load& load, const Use& use) const {
        if (!is_active) return;
        std::int64_t at = pixel;
        for (; at + (kUnroll - 1) * step < pixels; at += kUnroll * step) {
            decltype(load(at)) loaded[kUnroll];
#pragma unroll
            for (int i = 0; i < kUnroll; ++i) loaded[i] = load(at + i * step);
#pragma unroll
            for (int i = 0; i < kUnroll; ++i) use(at + i * step, loaded[i]);
        }
        for (; at < pixels; at += step) use(at, load(at));
    }
};

/// Sums `sums` of every channel over the rows of a block and writes the partial sums of this block
/// to the workspace. All threads must call it.
template <int kSums, int kWidth>
__device__ void write_partial(const Tiling& tiling, const TileThread<kWidth>& thread,
                              const float (&sums)[kSums][kWidth], float* workspace) {
    __shared__ float block_sums[kSums][kThreads * kWidth];
    const int width = tiling.columns * kWidth;
    if (thread.row < tiling.rows) {
        const int at = static_cast<int>(threadIdx.x) * kWidth;
        for (int i = 0; i < kWidth; ++i) {
            for (int s = 0; s < kSums; ++s) block_sums[s][at + i] = sums[s][i];
        }
    }
    __syncthreads();
    const std::int64_t block = static_cast<std::int64_t>(blockIdx.y) * tiling.chunks + thread.chunk;
    for (int k = static_cast<int>(threadIdx.x); k < kSums * width;
         k += static_cast<int>(kThreads)) {
        const int s = k / width, lane = k % width, channel = thread.tile * width + lane;
        if (channel >= tiling.channels) continue;
        float sum = 0;
        for (int row = 0; row < tiling.rows; ++row) sum += block_sums[s][row * width + lane];
        workspace[(block * kSums + s) * tiling.channels + channel] = sum;
    }
}

/// Each block combines the partial sums of kFinalChannels channels.
inline constexpr int kFinalChannels = 8;  // 32 bytes of fp32, the smallest memory transaction
inline constexpr unsigned kFinalThreads = 512;
inline constexpr int kFinalWarps = kFinalThreads / kWarp;

inline Grid final_grid(std::int64_t channels, Stream stream) {
    return {.blocks_x = divide_up(channels, kFinalChannels),
            .threads = kFinalThreads,
            .stream = stream};
}

inline Grid thread_per_channel(std::int64_t channels, Stream stream) {
    constexpr unsigned kBlockThreads = 128;
    return {
        .blocks_x = divide_up(channels, kBlockThreads), .threads = kBlockThreads, .stream = stream};
}

struct Sums {
    double first = 0, second = 0;
};

/// The channel of a thread in a final_grid(); may be beyond the last channel.
__device__ inline int final_channel() {
    return static_cast<int>(blockIdx.x) * kFinalChannels +
           static_cast<int>(threadIdx.x) % kFinalChannels;
}

/// Sums the partial sums 0 and `second` (of kSums) of final_channel() over the chunks of a span.
/// The result is valid in the first kFinalChannels threads. All threads must call it.
template <int kSums = 2>
__device__ Sums combine_partials(const Tiling& tiling, int span, const float* workspace,
                                 int second = 1) {
    __shared__ Sums warp_sums[kFinalWarps][kFinalChannels];
    Sums sums;
    const std::int64_t channels = tiling.channels;
    const int channel = final_channel();
    if (channel < tiling.channels) {
        const float* from = workspace +
                            static_cast<std::int64_t>(span) * tiling.chunks * kSums * channels +
                            channel;
#pragma unroll 4
        for (int chunk = static_cast<int>(threadIdx.x) / kFinalChannels; chunk < tiling.chunks;
             chunk += static_cast<int>(kFinalThreads) / kFinalChannels) {
            sums.first += from[kSums * chunk * channels];
            sums.second += from[(kSums * chunk + second) * channels];
        }
    }
    for (int distance = kFinalChannels; distance < static_cast<int>(kWarp); distance *= 2) {
        sums.first += __shfl_xor_sync(kAllLanes, sums.first, distance);
        sums.second += __shfl_xor_sync(kAllLanes, sums.second, distance);
    }
    const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    __syncthreads();  // the previous call may still read warp_sums
    if (lane < kFinalChannels) warp_sums[warp][lane] = sums;
    __syncthreads();
    if (threadIdx.x >= kFinalChannels) return sums;
    sums = {};
    for (int i = 0; i < kFinalWarps; ++i) {
        sums.first += warp_sums[i][threadIdx.x].first;
        sums.second += warp_sums[i][threadIdx.x].second;
    }
    return sums;
}

}  // namespace hpcai::kernels::batch_norm
