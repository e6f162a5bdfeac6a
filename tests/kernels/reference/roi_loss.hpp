// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include <hpcai/ops/box_math.hpp>

#include "kernels/host_numbers.hpp"
#include "kernels/region_losses.hpp"

namespace hpcai::kernels::reference {

inline int label_of(const RoiLossShape& shape, const RoiLossArguments& of, std::int64_t row) {
    const float number = of.targets[row * 9 + 4];
    return number >= 0 && number < static_cast<float>(shape.classes) ? static_cast<int>(number)
                                                                     : -1;
}

inline int count_of(const RoiLossShape& shape, const RoiLossArguments& of, std::int64_t image) {
    int count = 0;
    for (int i = 0; i < shape.samples; ++i) {
        count += label_of(shape, of, image * shape.samples + i) >= 0 ? 1 : 0;
    }
    return std::max(count, 1);
}

/// Returns the softmax of a row's logits at class k.
inline double probability(const RoiLossShape& shape, const float* logits, int k) {
    const double highest = *std::max_element(logits, logits + shape.classes);
    double sum = 0;
    for (int i = 0; i < shape.classes; ++i) sum += std::exp(logits[i] - highest);
    return std::exp(logits[k] - highest - std::log(sum));
}

inline float difference(const RoiLossShape& shape, const RoiLossArguments& of, std::int64_t row,
                        int label, int which) {
    return of.deltas[(row * shape.classes + label) * 4 + which] - of.targets[row * 9 + 5 + which];
}

inline void roi_loss(const RoiLossShape& shape, const RoiLossArguments& arguments, Stream) {
    for (std::int64_t image = 0; image < shape.images; ++image) {
        double classes = 0, boxes = 0;
        for (int i = 0; i < shape.samples; ++i) {
            const std::int64_t row = image * shape.samples + i;
            const int label = label_of(shape, arguments, row);
            if (label < 0) continue;
            const float* logits = arguments.logits + row * shape.classes;
            classes -= std::log(probability(shape, logits, label));
            for (int k = 0; label > 0 && k < 4; ++k) {
                boxes += ops::smooth_l1(difference(shape, arguments, row, label, k));
            }
        }
        const int count = count_of(shape, arguments, image);
        arguments.losses[2 * image] = static_cast<float>(classes / count);
        arguments.losses[2 * image + 1] = static_cast<float>(boxes / count);
    }
}

inline void roi_loss_gradient(const RoiLossShape& shape, const RoiLossArguments& arguments,
                              Stream) {
    for (std::int64_t row = 0; row < std::int64_t{shape.images} * shape.samples; ++row) {
        const int label = label_of(shape, arguments, row);
        const double scale =
            double{*arguments.loss_scale} / count_of(shape, arguments, row / shape.samples);
        const float* logits = arguments.logits + row * shape.classes;
        for (int k = 0; k < shape.classes; ++k) {
            const double slope =
                label < 0 ? 0 : probability(shape, logits, k) - (k == label ? 1 : 0);
            if (arguments.logit_gradients != nullptr) {
                put(arguments.dtype, arguments.logit_gradients, row * shape.classes + k,
                    scale * slope);
            }
            for (int which = 0; which < 4 && arguments.delta_gradients != nullptr; ++which) {
                const bool counts = label > 0 && k == label;
                put(arguments.dtype, arguments.delta_gradients,
                    (row * shape.classes + k) * 4 + which,
                    counts ? scale * ops::smooth_l1_slope(
                                         difference(shape, arguments, row, label, which))
                           : 0);
            }
        }
    }
}

}  // namespace hpcai::kernels::reference
