// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "batch_norm.hpp"
#include "elements.cuh"
#include "reduce.cuh"

/// The distribution of (spans, pixels, C) over threads. A thread keeps `kWidth` channels and
/// iterates over pixels of one span. Threads of a block are adjacent over channels first, so that a
/// warp reads whole lines. Blocks are adjacent over channels first, so that the grid sweeps memory
/// from one end to the other.
namespace hpcai::kernels::batch_norm {

inline constexpr int kWide = 8;  // channels of a thread if C allows it: a byte of the mask
inline constexpr unsigned kThreads = 256;
inline constexpr int kBlocksPerProcessor = 3;
// As many as run at once on an H100 or H200. Fixed: the order of sums must not depend on the GPU.
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
    constexpr std::int64_t kPixelsPerThread = 4;  // at least, if there are enough
    const std::int64_t all_columns = divide_up(shape.channels, width);
    const std::int64_t tiles = divide_up(all_columns, kWarp);
    const std::int64_t columns = divide_up(all_columns, tiles);
    const std::int64_t rows = kThreads / columns;
    const std::int64_t useful = divide_up(shape.pixels, rows * kPixelsPerThread);
    const std::int64_t chunks =
        std::clamp<std::int64_t>(kBlocks / (tiles * shape.spans), 1, useful);
    return {shape.pixels,           static_cast<int>(shape.channels), static_cast<int>(columns),
            static_cast<int>(rows), static_cast<int>(tiles),          static_cast<int>(chunks)};
}
inline Tiling tiling_of(const BatchNormShape& shape) {
    return tiling_of(shape, is_wide(shape) ? kWide : 1);
}

inline Grid grid_of(const BatchNormShape& shape, const Tiling& tiling, Stream stream) {
    return {.blocks_x = static_cast<unsigned>(tiling.tiles * tiling.chunks),
            .blocks_y = static_cast<unsigned>(shape.spans),
            .threads = kThreads,
            .stream = stream};
}

/// The layout of the workspace: partial sums (spans, chunks, sums, C), then pivots (spans, C) or
/// coefficients (3, spans, C) of each norm.
inline std::int64_t partial_floats(const BatchNormShape& shape, int sums = 2) {
    return shape.spans * tiling_of(shape).chunks * sums * shape.channels;
}

/// Enqueues two partial sums for every channel and span: of the differences of x from the span's
/// first pixel, which is stored as the pivot, and of the squares of these differences.
void sum_differences(const BatchNormShape& shape, const void* x, float* workspace, Stream stream);
/// Enqueues the partial sums of g, the gradient of the ReLU's input, and of g (x - mean).
void sum_gradients(const BatchNormShape& shape, const BatchNormGradientArguments& arguments,
                   Stream stream);

/// kWidth neighbouring elements as in memory. f16 and bf16 take half the registers of fp32.
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

/// Pixels that a thread loads ahead: as many as registers allow.
template <typename T>
inline constexpr int kInFlight = sizeof(T) == 4 ? 1 : 2;

/// The place of a thread.
template <int kWidth>
struct Place {
    int tile, chunk, column, row;
    int channel;         // the first of kWidth
    std::int64_t pixel;  // the first in the span
    std::int64_t step;   // to the next
    bool works;          // else the thread has no elements and only joins barriers

    __device__ explicit Place(const Tiling& tiling)
        : tile(static_cast<int>(blockIdx.x) % tiling.tiles),
          chunk(static_cast<int>(blockIdx.x) / tiling.tiles),
          column(static_cast<int>(threadIdx.x) % tiling.columns),
          row(static_cast<int>(threadIdx.x) / tiling.columns),
          channel((tile * tiling.columns + column) * kWidth),
          pixel(static_cast<std::int64_t>(chunk) * tiling.rows + row),
          step(static_cast<std::int64_t>(tiling.chunks) * tiling.rows),
          works(row < tiling.rows && channel < tiling.channels) {}

    /// Calls use(pixel, load(pixel)) for all pixels of the thread, with several loads in flight.
    template <int kAtOnce, typename Load, typename Use>
    __device__ void walk(std::int64_t pixels, const Load& load, const Use& use) const {
        if (!works) return;
        std::int64_t at = pixel;
        for (; at + (kAtOnce - 1) * step < pixels; at += kAtOnce * step) {
            decltype(load(at)) loaded[kAtOnce];
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i) loaded[i] = load(at + i * step);
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i) use(at + i * step, loaded[i]);
        }
        for (; at < pixels; at += step) use(at, load(at));
    }
};

/// Sums `sums` of every channel over the rows of a block and writes them as the part of this block
/// in the workspace. All threads must call it.
template <int kSums, int kWidth>
__device__ void write_partial(const Tiling& tiling, const Place<kWidth>& place,
                              const float (&sums)[kSums][kWidth], float* workspace) {
    __shared__ float kept[kSums][kThreads * kWidth];
    const int wide = tiling.columns * kWidth;
    if (place.row < tiling.rows) {
        const int at = static_cast<int>(threadIdx.x) * kWidth;
        for (int i = 0; i < kWidth; ++i) {
            for (int which = 0; which < kSums; ++which) kept[which][at + i] = sums[which][i];
        }
    }
    __syncthreads();
    const std::int64_t block = static_cast<std::int64_t>(blockIdx.y) * tiling.chunks + place.chunk;
    for (int k = static_cast<int>(threadIdx.x); k < kSums * wide; k += static_cast<int>(kThreads)) {
        const int which = k / wide, lane = k % wide, channel = place.tile * wide + lane;
        if (channel >= tiling.channels) continue;
        float sum = 0;
        for (int row = 0; row < tiling.rows; ++row) sum += kept[which][row * wide + lane];
        workspace[(block * kSums + which) * tiling.channels + channel] = sum;
    }
}

/// Each block combines the parts of kFinalChannels channels.
inline constexpr int kFinalChannels = 8;  // 32 bytes of fp32, the smallest memory transaction
inline constexpr unsigned kFinalThreads = 512;
inline constexpr int kFinalWarps = kFinalThreads / kWarp;

inline Grid final_grid(std::int64_t channels, Stream stream) {
    return {.blocks_x = static_cast<unsigned>(divide_up(channels, kFinalChannels)),
            .threads = kFinalThreads,
            .stream = stream};
}

struct Sums {
    double first = 0, second = 0;
};

/// The channel of a thread in a final_grid(); may be beyond the end.
__device__ inline int final_channel() {
    return static_cast<int>(blockIdx.x) * kFinalChannels +
           static_cast<int>(threadIdx.x) % kFinalChannels;
}

/// Totals over all chunks of a span's sum 0 and sum `second` (of kSums) for final_channel(), valid
/// in the first kFinalChannels threads. All threads must call it.
template <int kSums = 2>
__device__ Sums combine_partials(const Tiling& tiling, int span, const float* workspace,
                                 int second = 1) {
    __shared__ Sums of_warp[kFinalWarps][kFinalChannels];
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
    __syncthreads();  // the previous span may still read of_warp
    if (lane < kFinalChannels) of_warp[warp][lane] = sums;
    __syncthreads();
    if (threadIdx.x >= kFinalChannels) return sums;
    sums = {};
    for (int i = 0; i < kFinalWarps; ++i) {
        sums.first += of_warp[i][threadIdx.x].first;
        sums.second += of_warp[i][threadIdx.x].second;
    }
    return sums;
}

}  // namespace hpcai::kernels::batch_norm
