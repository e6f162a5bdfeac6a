// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include <hpcai/ops/box_math.hpp>

namespace hpcai::ops {

HPCAI_HOST_DEVICE inline Box box_of(const float* row) {
    return {row[0], row[1], row[2], row[3]};
}

/// Returns whether a row (x1, y1, x2, y2, class) has a positive area and a positive class.
HPCAI_HOST_DEVICE inline bool is_box(const float* row) {
    return row[4] > 0 && row[2] > row[0] && row[3] > row[1];
}

HPCAI_HOST_DEVICE inline bool is_finite(float number) {
    return number - number == 0;
}
HPCAI_HOST_DEVICE inline bool is_finite(const Box& box) {
    return is_finite(box.x1) && is_finite(box.y1) && is_finite(box.x2) && is_finite(box.y2);
}

/// The sides of an image and the shortest valid side of a box, in pixels.
struct ImageBounds {
    float height = 0;
    float width = 0;
    float min_side = 0;
};
/// Clips a finite `box` to the image. Returns false for other boxes, and if a side of the clipped
/// box is below `min_side`.
HPCAI_HOST_DEVICE inline bool clip_to_image(Box& box, const ImageBounds& bounds) {
    if (!is_finite(box)) return false;
    box = clipped(box, bounds.height, bounds.width);
    return !(box.x2 - box.x1 < bounds.min_side) && !(box.y2 - box.y1 < bounds.min_side);
}

/// Returns the largest fp32 number that does not exceed `limit`. An fp32 number exceeds the result
/// exactly if it exceeds `limit`.
inline float rounded_down(double limit) {
    const auto nearest = static_cast<float>(limit);
    return static_cast<double>(nearest) > limit ? std::nextafter(nearest, -HUGE_VALF) : nearest;
}

/// Returns the maximum number of positives among `samples` samples: samples x share, rounded down.
inline std::int64_t positive_limit(std::int64_t samples, double share) {
    return static_cast<std::int64_t>(static_cast<double>(samples) * share);
}

}  // namespace hpcai::ops
