// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/host_numbers.hpp"
#include "kernels/region_losses.hpp"

namespace hpcai::kernels::reference {

/// Calls body(row of the targets, anchor) for an image's sampled anchors. Returns their number.
template <typename Body>
int for_each_sample(const RpnLossShape& shape, const float* targets, int image, const Body& body) {
    int count = 0;
    for (int i = 0; i < shape.samples; ++i) {
        const float* row = targets + (std::int64_t{image} * shape.samples + i) * 6;
        if (!(row[0] >= 0 && row[0] < static_cast<float>(shape.grid.count))) continue;
        body(row, static_cast<int>(row[0]));
        ++count;
    }
    return count;
}

inline double logit_of(const RpnLossShape& shape, const RpnOutputs& rpn, int image, int number) {
    return get(rpn.dtype, rpn.logits[shape.grid.level_of(number)],
               anchor_index(shape.grid, image, number, 1, rpn.logit_stride));
}

/// Returns the difference between delta `which` and its target.
inline float difference(const RpnLossShape& shape, const RpnOutputs& rpn, int image,
                        const float* row, int which) {
    const int number = static_cast<int>(row[0]);
    const std::int64_t at = anchor_index(shape.grid, image, number, 4, rpn.delta_stride);
    return static_cast<float>(get(rpn.dtype, rpn.deltas[shape.grid.level_of(number)], at + which) -
                              row[2 + which]);
}

inline void rpn_loss(const RpnLossShape& shape, const RpnLossArguments& arguments, Stream) {
    for (int image = 0; image < shape.images; ++image) {
        double objectness = 0, boxes = 0;
        const int count =
            for_each_sample(shape, arguments.targets, image, [&](const float* row, int number) {
                const double logit = logit_of(shape, arguments.rpn, image, number);
                objectness += row[1] != 0
                                  ? std::log1p(std::exp(-std::fabs(logit))) - std::min(logit, 0.0)
                                  : std::log1p(std::exp(-std::fabs(logit))) + std::max(logit, 0.0);
                for (int k = 0; k < 4 && row[1] != 0; ++k) {
                    boxes += ops::smooth_l1(difference(shape, arguments.rpn, image, row, k));
                }
            });
        arguments.losses[2 * image] = static_cast<float>(objectness / std::max(count, 1));
        arguments.losses[2 * image + 1] = static_cast<float>(boxes / std::max(count, 1));
    }
}

inline void rpn_loss_gradient(const RpnLossShape& shape, const RpnLossGradientArguments& arguments,
                              Stream) {
    const RpnOutputs& rpn = arguments.rpn;
    for (int level = 0; level < shape.grid.levels; ++level) {
        const std::int64_t pixels =
            std::int64_t{shape.images} * shape.grid.count_of(level) / shape.grid.per_cell;
        for (std::int64_t i = 0;
             arguments.logits[level] != nullptr && i < pixels * rpn.logit_stride; ++i) {
            put(rpn.dtype, arguments.logits[level], i, 0);
        }
        for (std::int64_t i = 0;
             arguments.deltas[level] != nullptr && i < pixels * rpn.delta_stride; ++i) {
            put(rpn.dtype, arguments.deltas[level], i, 0);
        }
    }
    for (int image = 0; image < shape.images; ++image) {
        const int count =
            for_each_sample(shape, arguments.targets, image, [](const float*, int) {});
        const double scale = double{*arguments.loss_scale} / std::max(count, 1);
        for_each_sample(shape, arguments.targets, image, [&](const float* row, int number) {
            const int level = shape.grid.level_of(number);
            const double logit = logit_of(shape, rpn, image, number);
            if (arguments.logits[level] != nullptr) {
                put(rpn.dtype, arguments.logits[level],
                    anchor_index(shape.grid, image, number, 1, rpn.logit_stride),
                    scale * (1 / (1 + std::exp(-logit)) - row[1]));
            }
            if (row[1] == 0 || arguments.deltas[level] == nullptr) return;
            for (int k = 0; k < 4; ++k) {
                put(rpn.dtype, arguments.deltas[level],
                    anchor_index(shape.grid, image, number, 4, rpn.delta_stride) + k,
                    scale * ops::smooth_l1_slope(difference(shape, rpn, image, row, k)));
            }
        });
    }
}

}  // namespace hpcai::kernels::reference
