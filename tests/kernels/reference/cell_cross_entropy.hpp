// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <hpcai/ops/cell_class.hpp>

#include "kernels/cell_cross_entropy.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels::reference {

inline int label_of(const CellGrid& grid, const float* boxes, std::int64_t index) {
    const std::int64_t cells = grid.height * grid.width;
    const std::int64_t image = index / cells, pixel = index % cells;
    return ops::cell_class({boxes + image * grid.boxes * 5, grid.boxes, grid.classes}, grid.stride,
                           pixel / grid.width, pixel % grid.width);
}

inline double weight_of(const CellGrid& grid, int label) {
    return label == 0 ? grid.background_weight : 1;
}

inline void cell_cross_entropy(const CellGrid& grid, const CellCrossEntropyArguments& arguments,
                               Stream) {
    const std::int64_t cells = grid.height * grid.width;
    std::vector<double> sums(static_cast<std::size_t>(grid.images), 0.0);
    for (std::int64_t index = 0; index < grid.images * cells; ++index) {
        std::vector<double> logits;
        for (int k = 0; k < grid.classes; ++k) {
            logits.push_back(get(grid.dtype, arguments.logits, index * grid.padded_classes + k));
        }
        const double highest = *std::max_element(logits.begin(), logits.end());
        double sum = 0;
        for (const double logit : logits) sum += std::exp(logit - highest);
        for (int k = 0; k < grid.classes; ++k) {
            const double power = std::exp(logits[k] - highest);
            arguments.probabilities[index * grid.classes + k] = static_cast<float>(power / sum);
        }
        const int label = label_of(grid, arguments.boxes, index);
        const double loss = std::log(sum) + highest - logits[label];
        sums[index / cells] += weight_of(grid, label) * loss;
    }
    for (std::int64_t image = 0; image < grid.images; ++image) {
        arguments.losses[image] = static_cast<float>(sums[image] / static_cast<double>(cells));
    }
}

inline void cell_cross_entropy_gradient(const CellGrid& grid,
                                        const CellCrossEntropyGradientArguments& arguments,
                                        Stream) {
    const std::int64_t cells = grid.height * grid.width;
    for (std::int64_t index = 0; index < grid.images * cells; ++index) {
        const int label = label_of(grid, arguments.boxes, index);
        const double scale =
            *arguments.loss_scale * weight_of(grid, label) / static_cast<double>(cells);
        for (int k = 0; k < grid.padded_classes; ++k) {
            const bool is_class = k < grid.classes;
            const double said = is_class ? arguments.probabilities[index * grid.classes + k] : 0;
            put(grid.dtype, arguments.gradient, index * grid.padded_classes + k,
                scale * (said - (k == label ? 1 : 0)));
        }
    }
}

}  // namespace hpcai::kernels::reference
