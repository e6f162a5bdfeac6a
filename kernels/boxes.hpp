// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/box_math.hpp>

namespace hpcai::kernels {

using ops::Box;

/// The box of a row of (..., 4 or more) f32.
HPCAI_HOST_DEVICE inline Box box_of(const float* row) {
    return {row[0], row[1], row[2], row[3]};
}

/// Whether a row (x1, y1, x2, y2, class) is a box: one without area is none.
HPCAI_HOST_DEVICE inline bool is_box(const float* row) {
    return row[4] > 0 && row[2] > row[0] && row[3] > row[1];
}

HPCAI_HOST_DEVICE inline bool is_finite(float number) {
    return number - number == 0;
}
HPCAI_HOST_DEVICE inline bool is_finite(const Box& box) {
    return is_finite(box.x1) && is_finite(box.y1) && is_finite(box.x2) && is_finite(box.y2);
}

/// An image's sides, and the shortest side of a box that counts.
struct Bounds {
    float height = 0;
    float width = 0;
    float shortest = 0;
};
/// Clips a box; false where it is not finite or a side is too short afterwards.
HPCAI_HOST_DEVICE inline bool fits(Box& box, const Bounds& bounds) {
    if (!is_finite(box)) return false;
    box = ops::clipped(box, bounds.height, bounds.width);
    return !(box.x2 - box.x1 < bounds.shortest) && !(box.y2 - box.y1 < bounds.shortest);
}

}  // namespace hpcai::kernels
