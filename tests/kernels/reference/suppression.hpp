// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "kernels/boxes.hpp"
#include "kernels/rank_key.hpp"
#include "kernels/suppression.hpp"

namespace hpcai::kernels {

inline float rounded_down(double limit) {
    const auto nearest = static_cast<float>(limit);
    return static_cast<double>(nearest) > limit ? std::nextafter(nearest, -HUGE_VALF) : nearest;
}

namespace reference {

inline void suppress(const RankedLists& lists, Stream) {
    for (std::int64_t list = 0; list < lists.lists; ++list) {
        const float* boxes = lists.boxes + list * lists.length * 4;
        std::uint64_t* keys = lists.keys + list * lists.length;
        for (std::int64_t later = 0; later < lists.counts[list]; ++later) {
            for (std::int64_t i = 0; i < later; ++i) {
                if (keys[i] == kNoKey) continue;
                const float iou = ops::iou_of(box_of(boxes + 4 * i), box_of(boxes + 4 * later));
                if (iou > lists.largest_iou) keys[later] = kNoKey;
            }
        }
    }
}

}  // namespace reference
}  // namespace hpcai::kernels
