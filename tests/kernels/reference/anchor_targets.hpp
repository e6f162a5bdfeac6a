// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/reference/draw.hpp"
#include "kernels/region_targets.hpp"

namespace hpcai::kernels::reference {

/// Returns the IoU of every anchor with every box of an image; 0 for unused boxes and disjoint
/// pairs.
inline std::vector<std::vector<float>> overlaps(const AnchorTargetsShape& shape,
                                                const float* boxes) {
    std::vector<std::vector<float>> all(static_cast<std::size_t>(shape.grid.count));
    for (int number = 0; number < shape.grid.count; ++number) {
        for (int g = 0; g < shape.boxes; ++g) {
            const float* row = boxes + g * 5;
            const float iou = ops::iou_of(ops::box_of(row), shape.grid.box(number));
            all[number].push_back(ops::is_box(row) && iou > 0 ? iou : 0);
        }
    }
    return all;
}

inline void write_row(float* row, int number, const ops::BoxDeltas* target) {
    row[0] = static_cast<float>(number);
    row[1] = target != nullptr ? 1.0f : 0.0f;
    row[2] = target != nullptr ? target->x : 0.0f;
    row[3] = target != nullptr ? target->y : 0.0f;
    row[4] = target != nullptr ? target->w : 0.0f;
    row[5] = target != nullptr ? target->h : 0.0f;
}

inline void targets_of_image(const AnchorTargetsShape& shape, const float* boxes, std::int32_t key,
                             float* targets) {
    const auto iou = overlaps(shape, boxes);
    std::vector<float> highest(static_cast<std::size_t>(shape.boxes), 0.0f);
    for (const auto& of_anchor : iou) {
        for (std::size_t g = 0; g < highest.size(); ++g) {
            highest[g] = std::max(highest[g], of_anchor[g]);
        }
    }
    std::vector<int> positive, negative;
    for (int number = 0; number < shape.grid.count; ++number) {
        const auto& of_anchor = iou[number];
        const float best = *std::max_element(of_anchor.begin(), of_anchor.end());
        bool is_positive = best >= shape.foreground_iou;
        for (std::size_t g = 0; g < highest.size(); ++g) {
            is_positive = is_positive || (of_anchor[g] > 0 && of_anchor[g] == highest[g]);
        }
        if (is_positive) {
            positive.push_back(number);
        } else if (best < shape.background_iou) {
            negative.push_back(number);
        }
    }
    positive = drawn(positive, shape.max_positive, key, 0);
    negative = drawn(negative, shape.samples - static_cast<int>(positive.size()), key, 0);
    float* row = targets;
    for (const int number : positive) {
        const auto& of_anchor = iou[number];
        const auto match = std::max_element(of_anchor.begin(), of_anchor.end()) - of_anchor.begin();
        const auto target = ops::encode(ops::box_of(boxes + match * 5), shape.grid.box(number), {});
        write_row(row, number, &target);
        row += 6;
    }
    for (const int number : negative) {
        write_row(row, number, nullptr);
        row += 6;
    }
    for (; row < targets + shape.samples * 6; row += 6) write_row(row, -1, nullptr);
}

inline void anchor_targets(const AnchorTargetsShape& shape, const AnchorTargetsArguments& arguments,
                           Stream) {
    for (std::int64_t image = 0; image < shape.images; ++image) {
        targets_of_image(shape, arguments.boxes + image * shape.boxes * 5, arguments.keys[image],
                         arguments.targets + image * shape.samples * 6);
    }
}

}  // namespace hpcai::kernels::reference
