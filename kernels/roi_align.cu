// SPDX-License-Identifier: Apache-2.0
#include "elements.cuh"
#include "reduce.cuh"
#include "roi_align.hpp"

namespace hpcai::kernels {
namespace {

constexpr int kLevels = RoiAlignShape::kLevels, kMaxBins = RoiAlignShape::kMaxBins;
constexpr int kThreads = 256;

/// One block for each region; each thread computes V adjacent channels of a bin.
template <typename T, int V>
__global__ void __launch_bounds__(kThreads)
    roi_align_kernel(const __grid_constant__ RoiAlignShape shape,
                     const __grid_constant__ RoiAlignArguments args) {
    __shared__ AxisSample rows[RoiAlignShape::kMaxSamples], columns[RoiAlignShape::kMaxSamples];
    const std::int64_t region = blockIdx.x;
    const int thread = static_cast<int>(threadIdx.x), ratio = shape.sampling_ratio;
    const BinGrid grid = bin_grid(shape, args.regions + region * shape.region_columns);
    if (thread == 0 && args.grids != nullptr) args.grids[region] = grid;
    const int vectors = shape.channels / V, pooled = shape.pooled;
    T* output = static_cast<T*>(args.output) + region * pooled * pooled * shape.channels;
    const bool is_used = grid.level >= 0;
    const int width = is_used ? shape.width[grid.level] : 0;
    if (is_used && thread < pooled * ratio) {
        const int height = shape.height[grid.level];
        rows[thread] = axis_sample(grid.y, grid.bin_height, thread, ratio, height);
        columns[thread] = axis_sample(grid.x, grid.bin_width, thread, ratio, width);
    }
    __syncthreads();
    const int stride = shape.stored_channels;
    const T* image = nullptr;
    if (is_used) {
        image = static_cast<const T*>(args.pyramid[grid.level]) +
                region / shape.regions * shape.height[grid.level] * width * stride;
    }
    const float sample_weight = 1.0f / static_cast<float>(ratio * ratio);
    for (int item = thread; item < pooled * pooled * vectors; item += kThreads) {
        const int vector = item % vectors, bin = item / vectors;
        const int first_row = bin / pooled * ratio, first_column = bin % pooled * ratio;
        Pack<V> sum{};
        for (int sample = 0; is_used && sample < ratio * ratio; ++sample) {
            const AxisSample row = rows[first_row + sample / ratio];
            const AxisSample column = columns[first_column + sample % ratio];
            const T* low = image + std::int64_t{row.low} * width * stride + vector * V;
            const T* high = image + std::int64_t{row.high} * width * stride + vector * V;
            const Pack<V> corner[4] = {
                load<V>(low + column.low * stride), load<V>(low + column.high * stride),
                load<V>(high + column.low * stride), load<V>(high + column.high * stride)};
            const float weight[4] = {
                row.low_weight * column.low_weight, row.low_weight * column.high_weight,
                row.high_weight * column.low_weight, row.high_weight * column.high_weight};
            for (int i = 0; i < V; ++i) {
                for (int k = 0; k < 4; ++k) sum.lane[i] += weight[k] * corner[k].lane[i];
            }
        }
        for (int i = 0; i < V; ++i) sum.lane[i] *= sample_weight;
        store<V>(output + std::int64_t{bin} * shape.channels + vector * V, sum);
    }
}

constexpr int kTile = 8;   // pixels on a side
constexpr int kStrip = 4;  // pixels of a row that a warp sums
constexpr int kStrips = kTile / kStrip;
constexpr int kGradientThreads = kTile * kStrips * static_cast<int>(kWarp);
constexpr int kBatch = 16;  // regions whose weights are computed together

/// For each region of a batch, the weights of the tile's rows and columns in the region's bins.
struct Weights {
    float row_weights[kBatch][kTile][kMaxBins];
    float column_weights[kBatch][kTile][kMaxBins];
    unsigned row_bins[kBatch][kTile];      // bit b: bin b has a weight in this row
    unsigned strip_bins[kBatch][kStrips];  // bit b: bin b has a weight in a column of the strip
};

struct TileOrigin {
    int level, y, x;
};

/// The tiles of the coarsest level come first, because they have the most regions.
__device__ inline TileOrigin tile_origin(const RoiAlignShape& shape, int tile) {
    for (int level = kLevels - 1;; --level) {
        const int across = (shape.width[level] + kTile - 1) / kTile;
        const int tiles = across * ((shape.height[level] + kTile - 1) / kTile);
        if (level == 0 || tile < tiles) {
            return {level, tile / across * kTile, tile % across * kTile};
        }
        tile -= tiles;
    }
}

/// Whether samples of `pooled` bins from `begin` on may affect pixel rows (or columns) [first,
/// first + kTile). A sample affects rows less than one pixel away.
__device__ inline bool reaches(float begin, float bin, int pooled, int first) {
    const float end = begin + static_cast<float>(pooled) * bin;
    return !(end < static_cast<float>(first - 1)) && !(begin > static_cast<float>(first + kTile));
}

/// The samples of a region along one axis of a level.
struct Axis {
    float begin, bin_size;
    int extent;
};

/// The weight of pixel row or column `line` in a bin along this axis.
__device__ float bin_weight(const RoiAlignShape& shape, const Axis& axis, int bin, int line) {
    const int ratio = shape.sampling_ratio;
    float weight = 0;
    for (int i = bin * ratio; i < (bin + 1) * ratio; ++i) {
        const AxisSample sample = axis_sample(axis.begin, axis.bin_size, i, ratio, axis.extent);
        weight += sample.low == line ? sample.low_weight : 0;
        weight += sample.high == line ? sample.high_weight : 0;
    }
    return weight / static_cast<float>(ratio);
}

struct Batch {
    const int* regions;
    int count;
};

/// Computes the weights of a batch. All threads of a block must call it; it ends with a barrier.
__device__ void weigh(const RoiAlignShape& shape, const BinGrid* grids, const Batch& batch,
                      const TileOrigin& tile, Weights& weights) {
    const int thread = static_cast<int>(threadIdx.x), pooled = shape.pooled;
    const int height = shape.height[tile.level], width = shape.width[tile.level];
    for (int i = thread; i < batch.count * kTile * pooled; i += kGradientThreads) {
        const int bin = i % pooled, line = i / pooled % kTile, index = i / pooled / kTile;
        const BinGrid grid = grids[batch.regions[index]];
        weights.row_weights[index][line][bin] =
            bin_weight(shape, {grid.y, grid.bin_height, height}, bin, tile.y + line);
        weights.column_weights[index][line][bin] =
            bin_weight(shape, {grid.x, grid.bin_width, width}, bin, tile.x + line);
    }
    __syncthreads();
    constexpr int kMasks = kTile + kStrips;
    for (int i = thread; i < batch.count * kMasks; i += kGradientThreads) {
        const int index = i / kMasks, mask = i % kMasks;
        const int strip = mask - kTile;
        unsigned bins = 0;
        for (int bin = 0; bin < pooled; ++bin) {
            bool is_nonzero = mask < kTile && weights.row_weights[index][mask % kTile][bin] != 0;
            for (int k = 0; mask >= kTile && k < kStrip; ++k) {
                is_nonzero =
                    is_nonzero || weights.column_weights[index][strip * kStrip + k][bin] != 0;
            }
            if (is_nonzero) bins |= 1u << bin;
        }
        if (mask < kTile) {
            weights.row_bins[index][mask] = bins;
        } else {
            weights.strip_bins[index][strip] = bins;
        }
    }
    __syncthreads();
}

/// Finds the regions that affect the tile among kGradientThreads regions from `first` on, in order.
/// Returns their number. All threads of a block must call it; it begins and ends with a barrier.
__device__ int find_regions(const RoiAlignShape& shape, const BinGrid* grids, int first,
                            const TileOrigin& tile, int* found) {
    __shared__ int warp_counts[kGradientThreads / kWarp];
    const int region = first + static_cast<int>(threadIdx.x);
    const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
    bool is_reached = false;
    if (region < shape.regions) {
        const BinGrid grid = grids[region];
        is_reached = grid.level == tile.level &&
                     reaches(grid.y, grid.bin_height, shape.pooled, tile.y) &&
                     reaches(grid.x, grid.bin_width, shape.pooled, tile.x);
    }
    const unsigned votes = __ballot_sync(kAllLanes, is_reached);
    __syncthreads();
    if (lane == 0) warp_counts[warp] = __popc(votes);
    __syncthreads();
    int before = __popc(votes & ((1u << lane) - 1)), all = 0;
    for (unsigned other = 0; other < kGradientThreads / kWarp; ++other) {
        if (other < warp) before += warp_counts[other];
        all += warp_counts[other];
    }
    if (is_reached) found[before] = region;
    __syncthreads();
    return all;
}

/// Each block has one tile of one level of one image, and a chunk of kWarp x V channels. blockIdx.x
/// counts the tiles of all levels, blockIdx.y images x chunks. A warp sums kStrip pixels.
template <typename T, int V>
__global__ void __launch_bounds__(kGradientThreads, 1)
    roi_align_gradient_kernel(const __grid_constant__ RoiAlignShape shape,
                              const __grid_constant__ RoiAlignGradientArguments args,
                              int channel_chunks) {
    __shared__ Weights weights;
    __shared__ int found[kGradientThreads];
    const TileOrigin tile = tile_origin(shape, static_cast<int>(blockIdx.x));
    T* dx = static_cast<T*>(args.dx[tile.level]);
    if (dx == nullptr) return;
    const int image = static_cast<int>(blockIdx.y) / channel_chunks,
              channel_chunk = static_cast<int>(blockIdx.y) % channel_chunks;
    const int warp = static_cast<int>(threadIdx.x / kWarp);
    const int row = warp / kStrips, strip = warp % kStrips;
    const int channel =
        (channel_chunk * static_cast<int>(kWarp) + static_cast<int>(threadIdx.x % kWarp)) * V;
    const int bins = shape.pooled * shape.pooled;
    const BinGrid* grids = args.grids + std::int64_t{image} * shape.regions;
    const T* dy = static_cast<const T*>(args.dy) +
                  std::int64_t{image} * shape.regions * bins * shape.channels + channel;
    Pack<V> sums[kStrip] = {};
    for (int first = 0; first < shape.regions; first += kGradientThreads) {
        const int count = find_regions(shape, grids, first, tile, found);
        for (int start = 0; start < count; start += kBatch) {
            const int size = count - start < kBatch ? count - start : kBatch;
            weigh(shape, grids, {found + start, size}, tile, weights);
            for (int index = 0; channel < shape.channels && index < size; ++index) {
                const T* region_dy =
                    dy + std::int64_t{found[start + index]} * bins * shape.channels;
                for (unsigned y = weights.row_bins[index][row]; y != 0; y &= y - 1) {
                    const int bin_row = __ffs(y) - 1;
                    const float row_weight = weights.row_weights[index][row][bin_row];
                    for (unsigned x = weights.strip_bins[index][strip]; x != 0; x &= x - 1) {
                        const int bin_column = __ffs(x) - 1;
                        const int bin = bin_row * shape.pooled + bin_column;
                        const Pack<V> g = load<V>(region_dy + std::int64_t{bin} * shape.channels);
                        for (int k = 0; k < kStrip; ++k) {
                            const float weight =
                                row_weight *
                                weights.column_weights[index][strip * kStrip + k][bin_column];
                            for (int i = 0; i < V; ++i) sums[k].lane[i] += weight * g.lane[i];
                        }
                    }
                }
            }
            __syncthreads();
        }
    }
    const int height = shape.height[tile.level], width = shape.width[tile.level];
    const int to_y = tile.y + row;
    if (to_y >= height || channel >= shape.stored_channels) return;
    for (int k = 0; k < kStrip; ++k) {
        const int to_x = tile.x + strip * kStrip + k;
        if (to_x >= width) return;
        const std::int64_t pixel = (std::int64_t{image} * height + to_y) * width + to_x;
        store<V>(dx + pixel * shape.stored_channels + channel, sums[k]);
    }
}

/// Checks the shape, and calls `body` with the element type and the number of channels per thread.
template <typename Body>
void with_vectors(const RoiAlignShape& shape, const Body& body) {
    if (shape.images < 1 || shape.images > 1023 || shape.regions < 1 ||
        std::int64_t{shape.images} * shape.regions > 0x7fffffff || shape.region_columns < 5 ||
        shape.channels < 1 || shape.channels > shape.stored_channels || shape.pooled < 1 ||
        shape.pooled > kMaxBins || shape.sampling_ratio < 1 ||
        shape.pooled * shape.sampling_ratio > RoiAlignShape::kMaxSamples) {
        fail("roi_align: the sizes are outside the limits of RoiAlignShape");
    }
    const bool is_padded = shape.stored_channels != shape.channels;
    kernels::with_vectors(shape.dtype, is_padded ? 1 : shape.channels, body);
}

}  // namespace

void roi_align(const RoiAlignShape& shape, const RoiAlignArguments& arguments, Stream stream) {
    with_vectors(shape, [&]<typename T, int V>() {
        launch(roi_align_kernel<T, V>,
               {.blocks_x = shape.images * shape.regions, .threads = kThreads, .stream = stream},
               shape, arguments);
    });
}

void roi_align_gradient(const RoiAlignShape& shape, const RoiAlignGradientArguments& arguments,
                        Stream stream) {
    std::int64_t tiles = 0;
    for (int level = 0; level < kLevels; ++level) {
        tiles += divide_up(shape.height[level], kTile) * divide_up(shape.width[level], kTile);
    }
    with_vectors(shape, [&]<typename T, int V>() {
        const std::int64_t channel_chunks = divide_up(shape.stored_channels, kWarp * V);
        const std::int64_t blocks_y = shape.images * channel_chunks;
        if (blocks_y > 65535)
            fail("roi_align_gradient: the channels of all images need more than 65535 blocks");
        launch(roi_align_gradient_kernel<T, V>,
               {.blocks_x = tiles,
                .blocks_y = blocks_y,
                .threads = kGradientThreads,
                .stream = stream},
               shape, arguments, static_cast<int>(channel_chunks));
    });
}

}  // namespace hpcai::kernels
