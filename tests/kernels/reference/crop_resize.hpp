// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/crop_resize.hpp"

namespace hpcai::kernels::reference {

inline constexpr int kOne = 1 << 22;

/// Returns the weights of all pixels of a line of `size` pixels for output pixel `index` of `side`.
inline std::vector<std::int32_t> line_weights(int size, int side, int index) {
    const double scale = static_cast<double>(size) / side;
    const double support = std::max(scale, 1.0);
    const double center = (index + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(center - support + 0.5));
    const int last = std::min(size, static_cast<int>(center + support + 0.5));
    std::vector<double> heights(static_cast<std::size_t>(size), 0.0);
    double sum = 0;
    for (int i = first; i < last; ++i) {
        const double distance = std::abs((i - center + 0.5) * (1.0 / support));
        const double height = distance < 1 ? 1 - distance : 0;
        heights[i] = height;
        sum += height;
    }
    std::vector<std::int32_t> weights;
    for (const double height : heights) {
        weights.push_back(static_cast<std::int32_t>(0.5 + height / sum * kOne));
    }
    return weights;
}

inline int rounded(std::int64_t sum) {
    return static_cast<int>(std::clamp<std::int64_t>((sum + kOne / 2) / kOne, 0, 255));
}

/// Returns one channel of one pixel of the crop, resized but not mirrored.
inline int resized(const ViewBatch& batch, const PictureView& view, int x, int y, int channel) {
    const std::vector<std::int32_t> across = line_weights(view.width, batch.side, x);
    const std::vector<std::int32_t> down = line_weights(view.height, batch.side, y);
    std::int64_t sum = 0;
    for (int j = 0; j < view.height; ++j) {
        if (down[j] == 0) continue;
        std::int64_t line = 0;
        for (int i = 0; i < view.width; ++i) {
            const std::int64_t pixel =
                static_cast<std::int64_t>(view.top + j) * view.picture_width + view.left + i;
            line += static_cast<std::int64_t>(across[i]) *
                    batch.pictures[view.offset_bytes + 3 * pixel + channel];
        }
        sum += static_cast<std::int64_t>(down[j]) * rounded(line);
    }
    return rounded(sum);
}

inline void crop_resize(const ViewBatch& batch, Stream) {
    const int side = batch.side;
    for (std::int64_t row = 0; row < batch.rows; ++row) {
        const PictureView& view = batch.views[row];
        if (view.offset_bytes < 0) continue;
        for (int y = 0; y < side; ++y) {
            for (int x = 0; x < side; ++x) {
                const int to_x = view.flip ? side - 1 - x : x;
                const int to_y = view.vertical_flip ? side - 1 - y : y;
                for (int c = 0; c < 3; ++c) {
                    batch.images[((row * side + to_y) * side + to_x) * 3 + c] =
                        static_cast<std::uint8_t>(resized(batch, view, x, y, c));
                }
            }
        }
    }
}

}  // namespace hpcai::kernels::reference
