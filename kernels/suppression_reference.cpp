// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "boxes.hpp"
#include "rank_key.hpp"
#include "suppression.hpp"

namespace hpcai::kernels {

float rounded_down(double limit) {
    const auto nearest = static_cast<float>(limit);
    return static_cast<double>(nearest) > limit ? std::nextafter(nearest, -HUGE_VALF) : nearest;
}

namespace reference {

void suppress(const RankedLists& lists, Stream) {
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
