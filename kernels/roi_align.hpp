// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/box_math.hpp>
#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

/// ops::RoiAlign for channels-last images. Samples and sums are fp32.
namespace hpcai::kernels {

struct RoiAlignShape {
    static constexpr int kLevels = 4, kMaxBins = 16, kMaxSamples = 64;  // bins, samples: per side

    tensor::DType dtype = tensor::DType::f32;
    int images = 0;           // N, up to 1023
    int regions = 0;          // R, per image; N R up to 2^31 - 1
    int region_columns = 0;   // at least 5; the fifth is < 0 if the region is unused
    int channels = 0;         // C
    int stored_channels = 0;  // of a pixel in memory, at least C
    int pooled = 0;           // bins on a side of a region, up to kMaxBins
    int sampling_ratio = 0;   // on a side of a bin; pooled x sampling_ratio up to kMaxSamples
    int height[kLevels] = {};
    int width[kLevels] = {};
};

/// The grid of bins of a region, in pixels of its level.
struct BinGrid {
    int level;   // 0 is the finest; -1: unused region
    float y, x;  // of the first bin's corner
    float bin_height, bin_width;
};

/// The two pixels of a sample along one axis, and their weights.
struct AxisSample {
    int low, high;
    float low_weight, high_weight;
};

/// Returns the bins of a region, which has shape.region_columns elements.
HPCAI_HOST_DEVICE inline BinGrid bin_grid(const RoiAlignShape& shape, const float* region) {
    if (!(region[4] >= 0)) return {-1, 0, 0, 0, 0};
    const ops::Box box{region[0], region[1], region[2], region[3]};
    const int level = ops::pyramid_level(box);
    const float scale = 1.0f / static_cast<float>(1 << level);
    const float height = (box.y2 - box.y1) * scale, width = (box.x2 - box.x1) * scale;
    const auto bins = static_cast<float>(shape.pooled);
    return {level - 2, box.y1 * scale, box.x1 * scale, (height < 1.0f ? 1.0f : height) / bins,
            (width < 1.0f ? 1.0f : width) / bins};
}

/// Returns sample `index` of a region on an axis of `extent` pixels. The region begins at `begin`
/// and has `ratio` samples in each bin of size `bin`.
HPCAI_HOST_DEVICE inline AxisSample axis_sample(float begin, float bin, int index, int ratio,
                                                int extent) {
    const float bins = ops::rounded_product(static_cast<float>(index / ratio), bin);
    const float within = static_cast<float>(index % ratio) + 0.5f;
    const float at =
        ops::rounded_sum(ops::rounded_sum(begin, bins),
                         ops::rounded_product(within, bin) / static_cast<float>(ratio));
    // Samples more than one pixel outside, or at a NaN, are 0.
    if (!(at >= -1.0f && at <= static_cast<float>(extent))) return {0, 0, 0, 0};
    const int last = extent - 1;
    const float inside = fmaxf(at, 0.0f);
    const int low = static_cast<int>(inside);
    if (low >= last) return {last, last, 1, 0};
    const float rest = inside - static_cast<float>(low);
    return {low, low + 1, 1 - rest, rest};
}

struct RoiAlignArguments {
    const void* pyramid[RoiAlignShape::kLevels] = {};  // (N, H, W, stored C), the finest first
    const float* regions = nullptr;                    // (N R, region_columns)
    void* output = nullptr;                            // (N R, pooled x pooled x C)
    BinGrid* grids = nullptr;                          // (N R), or null
};
/// Writes the output and the bin grids. Throws Error(internal) beyond the limits of RoiAlignShape.
void roi_align(const RoiAlignShape& shape, const RoiAlignArguments& arguments, Stream stream);

struct RoiAlignGradientArguments {
    const BinGrid* grids = nullptr;
    const void* dy = nullptr;               // (N R, pooled x pooled x C)
    void* dx[RoiAlignShape::kLevels] = {};  // like the pyramid; null: not computed
};
/// Overwrites the gradients of the levels. Each pixel sums its terms in the order of the regions.
/// Throws like roi_align(), and if the channels of N images need more than 65535 blocks.
void roi_align_gradient(const RoiAlignShape& shape, const RoiAlignGradientArguments& arguments,
                        Stream stream);

}  // namespace hpcai::kernels
