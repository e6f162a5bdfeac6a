// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/host_numbers.hpp"
#include "kernels/proposals.hpp"
#include "kernels/suppression.hpp"

namespace hpcai::kernels::reference {

struct ProposedBox {
    float logit;
    int number;
    ops::Box box;
};

inline bool is_better_proposal(const ProposedBox& a, const ProposedBox& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.number < b.number;
}

inline ops::Box moved_anchor(const ProposalsShape& shape, const RpnOutputs& rpn, int image,
                             int number) {
    const int level = shape.grid.level_of(number);
    const std::int64_t at = anchor_index(shape.grid, image, number, 4, rpn.delta_stride);
    float delta[4];
    for (int i = 0; i < 4; ++i) {
        delta[i] = static_cast<float>(get(rpn.dtype, rpn.deltas[level], at + i));
    }
    return ops::decode({delta[0], delta[1], delta[2], delta[3]}, shape.grid.box(number), {});
}

/// Returns the best boxes of a level that suppression keeps.
inline std::vector<ProposedBox> of_level(const ProposalsShape& shape, const RpnOutputs& rpn,
                                         int image, int level) {
    std::vector<ProposedBox> all, kept;
    const int first = shape.grid.level[level].first;
    for (int number = first; number < first + shape.grid.count_of(level); ++number) {
        const std::int64_t at = anchor_index(shape.grid, image, number, 1, rpn.logit_stride);
        const auto logit = static_cast<float>(get(rpn.dtype, rpn.logits[level], at));
        if (!std::isnan(logit)) all.push_back({logit, number, {}});
    }
    std::sort(all.begin(), all.end(), is_better_proposal);
    all.resize(std::min(all.size(), static_cast<std::size_t>(shape.per_level)));
    for (ProposedBox& at : all) {
        at.box = moved_anchor(shape, rpn, image, at.number);
        if (!clip_to_image(at.box, shape.bounds)) continue;
        const bool overlaps = std::any_of(kept.begin(), kept.end(), [&](const ProposedBox& better) {
            return ops::iou_of(better.box, at.box) > shape.nms_iou;
        });
        if (!overlaps) kept.push_back(at);
    }
    return kept;
}

inline void proposals(const ProposalsShape& shape, const ProposalsArguments& arguments, Stream) {
    float* row = arguments.proposals;
    for (int image = 0; image < shape.images; ++image) {
        std::vector<ProposedBox> all;
        for (int level = 0; level < shape.grid.levels; ++level) {
            const auto some = of_level(shape, arguments.rpn, image, level);
            all.insert(all.end(), some.begin(), some.end());
        }
        std::sort(all.begin(), all.end(), is_better_proposal);
        for (std::size_t i = 0; i < static_cast<std::size_t>(shape.limit); ++i, row += 5) {
            const bool used = i < all.size();
            const ops::Box box = used ? all[i].box : ops::Box{};
            row[0] = box.x1;
            row[1] = box.y1;
            row[2] = box.x2;
            row[3] = box.y2;
            row[4] = used ? 1 / (1 + std::exp(-all[i].logit)) : -1;
        }
    }
}

}  // namespace hpcai::kernels::reference
