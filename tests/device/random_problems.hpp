// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/reference/naive_ops.hpp>
#include <hpcai/reference/naive_random.hpp>

/// Random problems that several tests use.
namespace hpcai::device {

inline naive::Problem random_batch_norm(tensor::DType compute, const ops::BatchNorm& op,
                                        int output_gradients, double mean) {
    const tensor::Shape channels{op.input[3]};
    naive::Random random(compute, 2), fp32(tensor::DType::f32, 3);
    naive::Problem problem{.operation = op};
    problem.inputs = {random.normal(op.input, mean)};
    if (op.add) problem.inputs.push_back(random.normal(op.input));
    problem.parameters = {fp32.normal(channels, 1, 0.5), fp32.normal(channels)};
    problem.running_mean = fp32.normal(channels);
    problem.running_variance = naive::Tensor(channels, 1.5);
    for (int i = 0; i < output_gradients; ++i) {
        problem.output_gradients.push_back(random.normal(op.input));
    }
    return problem;
}

/// Returns a problem of an operation that reads images only.
template <typename Operation>
naive::Problem random_images(tensor::DType compute, const Operation& op) {
    naive::Random random(compute, 4);
    naive::Problem problem{.operation = op};
    problem.inputs = {random.normal(op.input)};
    problem.output_gradients = {random.normal(output_shape(op))};
    return problem;
}

}  // namespace hpcai::device
