// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "solver.hpp"

namespace hpcai::naive {
namespace {

/// Returns the class of point (x, y), in pixels, of image n. It is the class of the smallest box in
/// `boxes` (N, G, 5) that covers the point (the first of equal ones), or 0 if no box covers it.
std::int64_t class_of_point(const Tensor& boxes, std::int64_t n, double x, double y) {
    std::int64_t found = 0;
    double least = HUGE_VAL;
    for (std::int64_t g = boxes.shape[1]; g-- > 0;) {
        const std::int64_t at = (n * boxes.shape[1] + g) * 5;
        const double area = (boxes[at + 2] - boxes[at]) * (boxes[at + 3] - boxes[at + 1]);
        const bool covers =
            boxes[at] <= x && x < boxes[at + 2] && boxes[at + 1] <= y && y < boxes[at + 3];
        if (boxes[at + 4] == 0 || !covers || area > least) continue;
        found = static_cast<std::int64_t>(boxes[at + 4]);
        least = area;
    }
    return found;
}

}  // namespace

void Solver::operator()(const ops::CellCrossEntropy& op) {
    const std::int64_t height = op.input[1], width = op.input[2], classes = op.input[3];
    const auto cells = static_cast<double>(height * width);
    solution.output = Tensor(output_shape(op));
    solution.losses = Tensor(Shape{op.input[0]});
    solution.input_gradients = {Tensor(op.input), Tensor()};
    for (std::int64_t cell = 0; cell < op.input[0] * height * width; ++cell) {
        const std::int64_t n = cell / (height * width);
        const double x_centre = (static_cast<double>(cell % width) + 0.5) * double(op.stride);
        const double y_centre =
            (static_cast<double>(cell / width % height) + 0.5) * double(op.stride);
        const std::int64_t label = class_of_point(problem.inputs[1], n, x_centre, y_centre);
        const double weight = (label == 0 ? op.background_weight : 1) / cells;
        std::vector<double> targets(static_cast<std::size_t>(classes));
        targets.at(static_cast<std::size_t>(label)) = 1;
        cross_entropy(cell, targets, weight, solution.losses[n]);
    }
}

}  // namespace hpcai::naive
