// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "kernels/host_numbers.hpp"
#include "kernels/roi_align.hpp"

namespace hpcai::kernels::reference {

/// Calls body(pixel of the level, bin, weight) for all pixels that contribute to the bins of a
/// region.
template <typename Body>
void for_each_share(const RoiAlignShape& shape, const BinGrid& grid, const Body& body) {
    const int ratio = shape.sampling_ratio, samples = shape.pooled * ratio;
    const int height = shape.height[grid.level], width = shape.width[grid.level];
    for (int i = 0; i < samples; ++i) {
        const AxisSample row = axis_sample(grid.y, grid.bin_height, i, ratio, height);
        for (int j = 0; j < samples; ++j) {
            const AxisSample column = axis_sample(grid.x, grid.bin_width, j, ratio, width);
            const int bin = i / ratio * shape.pooled + j / ratio;
            for (const auto& [y, y_weight] :
                 {std::pair(row.low, row.low_weight), std::pair(row.high, row.high_weight)}) {
                for (const auto& [x, x_weight] : {std::pair(column.low, column.low_weight),
                                                  std::pair(column.high, column.high_weight)}) {
                    const double weight = double{y_weight} * x_weight / (ratio * ratio);
                    body(std::int64_t{y} * width + x, bin, weight);
                }
            }
        }
    }
}

inline std::int64_t pixels_of(const RoiAlignShape& shape, int level) {
    return std::int64_t{shape.height[level]} * shape.width[level];
}

inline void roi_align(const RoiAlignShape& shape, const RoiAlignArguments& arguments, Stream) {
    const std::int64_t bins = std::int64_t{shape.pooled} * shape.pooled, channels = shape.channels;
    for (std::int64_t region = 0; region < std::int64_t{shape.images} * shape.regions; ++region) {
        const BinGrid grid = bin_grid(shape, arguments.regions + region * shape.region_columns);
        if (arguments.grids != nullptr) arguments.grids[region] = grid;
        std::vector<double> sums(static_cast<std::size_t>(bins * channels));
        if (grid.level >= 0) {
            const std::int64_t first = region / shape.regions * pixels_of(shape, grid.level);
            for_each_share(shape, grid, [&](std::int64_t pixel, int bin, double weight) {
                for (std::int64_t c = 0; c < channels; ++c) {
                    const double x = get(shape.dtype, arguments.pyramid[grid.level],
                                         (first + pixel) * shape.stored_channels + c);
                    sums[bin * channels + c] += weight * x;
                }
            });
        }
        for (std::int64_t i = 0; i < bins * channels; ++i) {
            put(shape.dtype, arguments.output, region * bins * channels + i, sums[i]);
        }
    }
}

inline void roi_align_gradient(const RoiAlignShape& shape,
                               const RoiAlignGradientArguments& arguments, Stream) {
    const std::int64_t bins = std::int64_t{shape.pooled} * shape.pooled, channels = shape.channels;
    const std::int64_t stored = shape.stored_channels;
    for (int level = 0; level < RoiAlignShape::kLevels; ++level) {
        if (arguments.dx[level] == nullptr) continue;
        const std::int64_t pixels = pixels_of(shape, level);
        std::vector<double> sums(static_cast<std::size_t>(shape.images * pixels * stored));
        for (std::int64_t region = 0; region < std::int64_t{shape.images} * shape.regions;
             ++region) {
            const BinGrid& grid = arguments.grids[region];
            if (grid.level != level) continue;
            const std::int64_t first = region / shape.regions * pixels;
            for_each_share(shape, grid, [&](std::int64_t pixel, int bin, double weight) {
                for (std::int64_t c = 0; c < channels; ++c) {
                    const double g =
                        get(shape.dtype, arguments.dy, (region * bins + bin) * channels + c);
                    sums[(first + pixel) * stored + c] += weight * g;
                }
            });
        }
        for (std::size_t i = 0; i < sums.size(); ++i) {
            put(shape.dtype, arguments.dx[level], static_cast<std::int64_t>(i), sums[i]);
        }
    }
}

}  // namespace hpcai::kernels::reference
