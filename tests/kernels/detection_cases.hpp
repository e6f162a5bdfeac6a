// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <anchor_grid.hpp>

#include "kernels/buffer.hpp"

/// Boxes and anchors for tests of the kernels of detection.
namespace hpcai::kernels {

/// Returns levels of strides 4, 8, ... with three anchors per cell; the first has `height` x
/// `width` cells.
inline AnchorGrid small_grid(std::int64_t height, std::int64_t width, int levels) {
    ops::Anchors anchors{.levels = {}, .image_height = 4 * height, .image_width = 4 * width};
    for (int level = 0; level < levels; ++level) {
        const std::int64_t stride = 4 << level, divisor = 1 << level;
        const auto side = static_cast<float>(2 * stride);
        anchors.levels.push_back({(height + divisor - 1) / divisor,
                                  (width + divisor - 1) / divisor,
                                  stride,
                                  {{-side, -side / 2, side, side / 2},
                                   {-side / 2, -side / 2, side / 2, side / 2},
                                   {-side / 4, -side / 2, side / 4, side / 2}}});
    }
    return make_anchor_grid(anchors);
}

/// Returns (rows, columns) f32: boxes with whole corners in an image of `height` x `width`, and
/// numbers in [0, n) in column 4.
inline Buffer random_boxes(Contents& contents, std::int64_t rows, std::int64_t columns,
                           std::array<std::uint32_t, 2> image, std::uint32_t n) {
    const auto [height, width] = image;
    const Buffer x = contents.whole(DType::f32, 2 * rows, width);
    const Buffer y = contents.whole(DType::f32, 2 * rows, height);
    const Buffer classes = contents.whole(DType::f32, rows, n);
    Buffer boxes(DType::f32, std::vector<double>(static_cast<std::size_t>(rows * columns)));
    for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t at = row * columns;
        boxes.set(at, std::fmin(x[2 * row], x[2 * row + 1]));
        boxes.set(at + 1, std::fmin(y[2 * row], y[2 * row + 1]));
        boxes.set(at + 2, std::fmax(x[2 * row], x[2 * row + 1]) + 1);
        boxes.set(at + 3, std::fmax(y[2 * row], y[2 * row + 1]) + 1);
        boxes.set(at + 4, classes[row]);
    }
    return boxes;
}

}  // namespace hpcai::kernels
