// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/reference/draw.hpp"
#include "kernels/region_targets.hpp"

namespace hpcai::kernels::reference {

struct MatchedBox {
    const float* row;
    const float* match;  // the row of a box; null: background
};

/// Returns the box with which the region has the highest IoU; null if that IoU is too low.
inline const float* match(const RoiTargetsShape& shape, const float* boxes,
                          const ops::Box& region) {
    float best = 0;
    const float* found = nullptr;
    for (const float* box = boxes; box < boxes + shape.boxes * 5; box += 5) {
        const float iou = ops::iou_of(ops::box_of(box), region);
        if (ops::is_box(box) && iou > best) {
            best = iou;
            found = box;
        }
    }
    return best >= shape.foreground_iou ? found : nullptr;
}

inline void targets_of_image(const RoiTargetsShape& shape, const RoiTargetsArguments& of,
                             std::int64_t image) {
    const float* boxes = of.boxes + image * shape.boxes * 5;
    std::vector<MatchedBox> candidates;
    std::vector<int> foreground, background;
    for (int i = 0; i < shape.proposals + shape.boxes; ++i) {
        const bool proposed = i < shape.proposals;
        const float* row = proposed ? of.proposals + (image * shape.proposals + i) * 5
                                    : boxes + (i - shape.proposals) * 5;
        candidates.push_back({row, match(shape, boxes, ops::box_of(row))});
        if (proposed ? !(row[4] >= 0) : !ops::is_box(row)) continue;
        (candidates.back().match != nullptr ? foreground : background).push_back(i);
    }
    foreground = drawn(foreground, shape.max_foreground, of.keys[image], 1);
    background =
        drawn(background, shape.samples - static_cast<int>(foreground.size()), of.keys[image], 1);
    std::vector<int> all = foreground;
    all.insert(all.end(), background.begin(), background.end());
    all.resize(static_cast<std::size_t>(shape.samples), -1);
    float* to = of.targets + image * shape.samples * 9;
    for (const int number : all) {
        const MatchedBox none{nullptr, nullptr};
        const MatchedBox& at = number < 0 ? none : candidates[number];
        ops::BoxDeltas target;
        if (at.match != nullptr)
            target = ops::encode(ops::box_of(at.match), ops::box_of(at.row), shape.coder);
        for (int i = 0; i < 4; ++i) *to++ = number < 0 ? 0 : at.row[i];
        *to++ = number < 0 ? -1 : at.match != nullptr ? at.match[4] : 0;
        for (const float delta : {target.x, target.y, target.w, target.h}) *to++ = delta;
    }
}

inline void roi_targets(const RoiTargetsShape& shape, const RoiTargetsArguments& arguments,
                        Stream) {
    for (std::int64_t image = 0; image < shape.images; ++image)
        targets_of_image(shape, arguments, image);
}

}  // namespace hpcai::kernels::reference
