// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/box_math.hpp>

#include "kernels/suppression.hpp"

namespace hpcai::kernels::reference {

inline void suppress(const BoxLists& lists, Stream) {
    for (std::int64_t list = 0; list < lists.lists; ++list) {
        const float* boxes = lists.boxes + list * lists.length * 4;
        std::uint64_t* keys = lists.keys + list * lists.length;
        for (std::int64_t later = 0; later < lists.counts[list]; ++later) {
            for (std::int64_t i = 0; i < later; ++i) {
                if (keys[i] == kNoKey) continue;
                const float iou =
                    ops::iou_of(ops::box_of(boxes + 4 * i), ops::box_of(boxes + 4 * later));
                if (iou > lists.max_iou) keys[later] = kNoKey;
            }
        }
    }
}

}  // namespace hpcai::kernels::reference
