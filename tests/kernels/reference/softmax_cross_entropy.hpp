// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/host_numbers.hpp"
#include "kernels/softmax_cross_entropy.hpp"

namespace hpcai::kernels::reference {

inline double target(const SoftmaxShape& shape, std::int64_t index, std::int32_t label) {
    return shape.label_smoothing / static_cast<double>(shape.classes) +
           (index == label ? 1 - shape.label_smoothing : 0);
}

inline void softmax_cross_entropy(const SoftmaxShape& shape, const SoftmaxArguments& arguments,
                                  Stream) {
    for (std::int64_t row = 0; row < shape.rows; ++row) {
        const float* logits = arguments.logits + row * shape.classes;
        const double highest = *std::max_element(logits, logits + shape.classes);
        double sum = 0, loss = 0;
        for (std::int64_t i = 0; i < shape.classes; ++i) sum += std::exp(logits[i] - highest);
        for (std::int64_t i = 0; i < shape.classes; ++i) {
            const double logarithm = logits[i] - highest - std::log(sum);
            arguments.probabilities[row * shape.classes + i] =
                static_cast<float>(std::exp(logarithm));
            loss -= target(shape, i, arguments.labels[row]) * logarithm;
        }
        arguments.losses[row] = arguments.labels[row] < 0 ? 0 : static_cast<float>(loss);
    }
}

inline void softmax_cross_entropy_gradient(const SoftmaxShape& shape,
                                           const SoftmaxGradientArguments& arguments, Stream) {
    for (std::int64_t i = 0; i < shape.rows * shape.classes; ++i) {
        const std::int32_t label = arguments.labels[i / shape.classes];
        const double excess = arguments.probabilities[i] - target(shape, i % shape.classes, label);
        put(arguments.dtype, arguments.gradient, i, label < 0 ? 0 : *arguments.loss_scale * excess);
    }
}

inline void accumulate_loss(const float* losses, std::int64_t rows, double* total, Stream) {
    double sum = 0;
    for (std::int64_t row = 0; row < rows; ++row) sum += losses[row];
    *total += sum;
}

}  // namespace hpcai::kernels::reference
