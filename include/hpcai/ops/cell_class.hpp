// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/box_math.hpp>

namespace hpcai::ops {

/// The objects in one image.
struct ImageBoxes {
    const float* rows = nullptr;  // (count, 5): x1, y1, x2, y2 in pixels, class
    std::int64_t count = 0;
    int classes = 0;  // rows with a class outside 1 to classes - 1 are ignored
};

/// Returns the class of the smallest box that covers the point (x, y), in pixels; in a tie, that of
/// the first box; 0 if no box covers the point. x2 and y2 are exclusive.
HPCAI_HOST_DEVICE inline int class_at(const ImageBoxes& boxes, float x, float y) {
    int label = 0;
    float smallest_area = 0;
    for (std::int64_t row = 0; row < boxes.count; ++row) {
        const float* const box = boxes.rows + 5 * row;
        const bool is_box = box[4] >= 1 && box[4] < static_cast<float>(boxes.classes);
        if (!is_box || x < box[0] || y < box[1] || !(x < box[2]) || !(y < box[3])) continue;
        const float area = area_of({box[0], box[1], box[2], box[3]});
        if (label != 0 && !(area < smallest_area)) continue;
        label = static_cast<int>(box[4]);
        smallest_area = area;
    }
    return label;
}

/// Returns the class at the centre of cell (row, column) in a grid of squares of `stride` pixels.
HPCAI_HOST_DEVICE inline int cell_class(const ImageBoxes& boxes, std::int64_t stride,
                                        std::int64_t row, std::int64_t column) {
    const float half = 0.5f * static_cast<float>(stride);
    return class_at(boxes, static_cast<float>(column * stride) + half,
                    static_cast<float>(row * stride) + half);
}

}  // namespace hpcai::ops
