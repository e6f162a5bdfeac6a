// SPDX-License-Identifier: Apache-2.0
#include "suppression.hpp"

#include <cmath>

namespace hpcai::device::cpu {

float rounded_down(double limit) {
    const auto nearest = static_cast<float>(limit);
    return static_cast<double>(nearest) > limit ? std::nextafter(nearest, -HUGE_VALF) : nearest;
}

bool is_finite(const ops::Box& box) {
    return std::isfinite(box.x1) && std::isfinite(box.y1) && std::isfinite(box.x2) &&
           std::isfinite(box.y2);
}

}  // namespace hpcai::device::cpu
