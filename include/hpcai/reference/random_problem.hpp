// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <hpcai/reference/naive_ops.hpp>

namespace hpcai::naive {

/// What a problem needs in addition to its operation.
struct ProblemSetup {
    tensor::DType compute = tensor::DType::f32;  // of images and their gradients
    std::vector<Shape> parameters;
    bool is_first_layer = false;
};

/// Returns a training step of an operation on random numbers, which are exact in the types in which
/// a device stores them. Images and parameters are normally distributed, bytes and labels
/// uniformly; each box covers a quarter of the image. The output gradient is 0 where a tiny error
/// could change the sign of a ReLU's input or the pixel that a MaxPool selects. Throws
/// Error(internal) for operations for which has_random_problem() is false.
Problem random_problem(const ops::Operation& operation, const ProblemSetup& setup);

/// Returns whether random_problem() accepts the operation. It refuses operations of a detector,
/// shards, and BatchNorms of fewer than 16 values per channel, whose gradients may be nearly 0.
bool has_random_problem(const ops::Operation& operation);

/// Returns the error of the gradients in `solution`, which is solve(problem): the difference of two
/// derivatives in a random direction of all inputs and parameters, divided by the gradients' norm.
/// One follows from the gradients, the other from a central difference. 0 if this norm is 0.
double gradient_error(const Problem& problem, const Solution& solution);

}  // namespace hpcai::naive
