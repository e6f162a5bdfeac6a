// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include <omp.h>

#include <hpcai/base/error.hpp>
#include <hpcai/ops/box_math.hpp>

#include "scratch.hpp"

namespace hpcai::device::cpu {
namespace {

constexpr int kMaxPooled = 16;  // bins on a side
constexpr int kMaxTileLanes = 16;
constexpr std::int32_t kUnused = -1;

/// The forward pass is parallel over regions and saves their levels and sample positions. The
/// backward pass is parallel over the tiles of all images. It processes regions in order, so that
/// sums have the same bits for any number of threads. Sums are fp32; with bf16 gradients each
/// thread has a private tile of sums in the workspace.
class RoiAlignKernel final : public OperationKernel<ops::RoiAlign, Context> {
public:
    RoiAlignKernel(const ops::RoiAlign& op, const KernelOptions& options, const Context& context)
        : OperationKernel(op, options, context),
          regions_(op.regions[0] * op.regions[1]),
          channels_(op.pyramid[0][3]),
          axis_samples_(op.pooled * op.sampling_ratio),
          threads_(omp_get_max_threads()) {
        ensure(op.pooled > 0 && op.pooled <= kMaxPooled && op.sampling_ratio > 0,
               "RoiAlign needs 1 to 16 bins per side, got {}, each with 1 or more samples, got {}",
               op.pooled, op.sampling_ratio);
        for (const Shape& level : op.pyramid) {
            ensure(level[0] == op.regions[0] && level[3] == channels_,
                   "level {} must have the images of regions {} and the channels of level {}",
                   to_string(level), to_string(op.regions), to_string(op.pyramid[0]));
            grids_.push_back(tile_grid(context.layouts, level, options.compute));
        }
        Scratch counted;
        lay_out(counted);
        saved_bytes_ = counted.bytes();
    }

    KernelMemory memory() const override {
        const std::int64_t sums = has_private_sums() ? threads_ * largest_tile() : 0;
        return {.saved_bytes = saved_bytes_,
                .workspace_bytes = static_cast<std::size_t>(sums) * sizeof(float)};
    }
    void bind(const KernelTensors& tensors) override {
        OperationKernel::bind(tensors);
        Scratch saved(tensors.saved);
        lay_out(saved);
    }

private:
    void forward() override {
#pragma omp parallel for schedule(static)
        for (std::int64_t region = 0; region < regions_; ++region) forward(region);
    }
    void input_gradient() override {
        const std::int64_t tiles = grids_[0].tiles, images = op_.regions[0];
        for (std::size_t level = 0; level < grids_.size(); ++level) {
            if (tensors_.input_gradients[level] == nullptr) continue;
#pragma omp parallel for collapse(2) schedule(static) num_threads(threads_)
            for (std::int64_t image = 0; image < images; ++image) {
                for (std::int64_t tile = 0; tile < tiles; ++tile) backward(level, image, tile);
            }
        }
    }

    void lay_out(Scratch& saved) {
        levels_ = saved.take<std::int32_t>(regions_);
        samples_ = saved.take<AxisSample>(regions_ * 2 * axis_samples_);
    }
    bool has_private_sums() const {
        return trains() && options_.compute != DType::f32;
    }
    /// Returns the number of elements of the largest tile of an image.
    std::int64_t largest_tile() const {
        std::int64_t largest = 0;
        for (const TileGrid& grid : grids_) {
            largest = std::max(largest, grid.tile.pixels * grid.tile.lanes);
        }
        return largest;
    }

    RegionBins bins_of(std::int64_t region, std::size_t level) const {
        const AxisSample* rows = samples_ + region * 2 * axis_samples_;
        return {rows, rows + axis_samples_, static_cast<int>(op_.pooled),
                static_cast<int>(op_.sampling_ratio), op_.pyramid[level][2]};
    }
    Tile bins_tile() const {
        const Tile& tile = grids_[0].tile;
        return {op_.pooled * op_.pooled, channels_, tile.lanes, tile.dtype};
    }
    /// Returns the address of the first channel of a tile in the first bin of the region.
    void* bins_at(void* base, std::int64_t region, std::int64_t tile) const {
        const std::int64_t element =
            region * op_.pooled * op_.pooled * channels_ + tile * grids_[0].tile.lanes;
        return static_cast<std::byte*>(base) +
               static_cast<std::size_t>(element) * size_of(options_.compute);
    }

    void forward(std::int64_t region) const {
        locate_samples(region);
        const std::int32_t level = levels_[region];
        if (level == kUnused) {
            std::memset(bins_at(tensors_.output, region, 0), 0,
                        static_cast<std::size_t>(op_.pooled * op_.pooled * channels_) *
                            size_of(options_.compute));
            return;
        }
        const auto index = static_cast<std::size_t>(level);
        const TileGrid& grid = grids_[index];
        float bins[kMaxPooled * kMaxPooled * kMaxTileLanes];
        for (std::int64_t tile = 0; tile < grid.tiles; ++tile) {
            const void* x = grid.at(tensors_.inputs[index], region / op_.regions[1], tile);
            loops_.gather_region(grid.tile, x, bins_of(region, index), bins);
            loops_.store_floats(bins_tile(), bins, bins_at(tensors_.output, region, tile));
        }
    }

    void locate_samples(std::int64_t region) const {
        const float* row = input(grids_.size()) + region * op_.regions[2];
        levels_[region] = kUnused;
        if (!(row[4] >= 0)) return;
        const ops::Box box = ops::box_of(row);
        const int level = ops::pyramid_level(box);  // 2 for the finest level
        levels_[region] = level - 2;
        const Shape& shape = op_.pyramid[level - 2];
        const float scale = 1.0f / static_cast<float>(1 << level);
        AxisSample* samples = samples_ + region * 2 * axis_samples_;
        locate_on_axis(box.y1 * scale, box.y2 * scale, shape[1], samples);
        locate_on_axis(box.x1 * scale, box.x2 * scale, shape[2], samples + axis_samples_);
    }

    void locate_on_axis(float begin, float end, std::int64_t extent, AxisSample* samples) const {
        const auto ratio = static_cast<float>(op_.sampling_ratio);
        const float bin = std::max(end - begin, 1.0f) / static_cast<float>(op_.pooled);
        for (std::int64_t i = 0; i < axis_samples_; ++i) {
            const auto index = static_cast<float>(i / op_.sampling_ratio);
            const float within = static_cast<float>(i % op_.sampling_ratio) + 0.5f;
            samples[i] = sample_at(begin + index * bin + within * bin / ratio, extent);
        }
    }

    static AxisSample sample_at(float at, std::int64_t extent) {
        // A sample more than one pixel outside the level, or at a NaN, is 0.
        if (!(at >= -1.0f && at <= static_cast<float>(extent))) return {0, 0, 0, 0};
        const auto last = static_cast<std::int32_t>(extent - 1);
        const float inside = std::max(at, 0.0f);
        const auto low = static_cast<std::int32_t>(inside);
        if (low >= last) return {last, last, 1, 0};
        const float fraction = inside - static_cast<float>(low);
        return {low, low + 1, 1 - fraction, fraction};
    }

    void backward(std::size_t level, std::int64_t image, std::int64_t tile) const {
        const TileGrid& grid = grids_[level];
        void* dx = grid.at(tensors_.input_gradients[level], image, tile);
        Tile sums = grid.tile;
        auto* to = static_cast<float*>(dx);
        if (has_private_sums()) {
            to = static_cast<float*>(tensors_.workspace) + omp_get_thread_num() * largest_tile();
            sums.stride = sums.lanes;
            sums.dtype = DType::f32;
        }
        const float zeros[kMaxTileLanes] = {};
        loops_.pixel_fill(sums, zeros, to);
        float bins[kMaxPooled * kMaxPooled * kMaxTileLanes];
        for (std::int64_t region = image * op_.regions[1]; region < (image + 1) * op_.regions[1];
             ++region) {
            if (levels_[region] != static_cast<std::int32_t>(level)) continue;
            loops_.load_floats(bins_tile(), bins_at(tensors_.output_gradients[0], region, tile),
                               bins);
            loops_.scatter_region(sums, bins, bins_of(region, level), to);
        }
        if (has_private_sums()) loops_.store_floats(grid.tile, to, dx);
    }

    const SimdKernels& loops_ = *context_.loops;
    std::int64_t regions_;  // of all images
    std::int64_t channels_;
    std::int64_t axis_samples_;  // of a region along one axis
    int threads_;
    std::size_t saved_bytes_ = 0;
    std::vector<TileGrid> grids_;     // (levels)
    std::int32_t* levels_ = nullptr;  // (regions): 0 is the finest level, -1 an unused region
    AxisSample* samples_ = nullptr;   // (regions, 2, axis_samples_): rows, columns
};

}  // namespace

HPCAI_BUILD_KERNEL(RoiAlign)

}  // namespace hpcai::device::cpu
