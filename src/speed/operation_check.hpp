// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/device/device.hpp>
#include <hpcai/graph/graph.hpp>
#include <hpcai/reference/naive_ops.hpp>
#include <hpcai/speed/check_records.hpp>

namespace hpcai::speed {

inline constexpr int kComparedRuns = 10;            // of an operation, to compare their bits
inline constexpr double kGradientTolerance = 1e-5;  // of OperationCheck::gradient_error

/// An operation with one shape, and the nodes that have it.
struct DistinctOperation {
    std::string shape;  // with the other options of the operation
    std::string node;   // the first node
    int nodes = 0;
    ops::Operation operation;
    std::vector<tensor::Shape> parameters;
    bool is_first_layer = false;  // no input gradients
};

/// Compares `got`, a tensor that the device computed, with the naive `want`. Errors are relative to
/// the largest number of `want`, but at least to `least_scale`.
TensorCheck compare(std::string name, const naive::Tensor& got, const naive::Tensor& want,
                    double tolerance, double least_scale = 0);

/// Returns the distinct operations of a graph, in order of their first nodes.
std::vector<DistinctOperation> distinct_operations(const graph::Graph& graph);

/// Compares one operation, for which naive::has_random_problem() holds, with the naive loops, and
/// measures each pass `runs` times. Throws as the device does.
OperationCheck check_operation(const DistinctOperation& distinct, device::Device& device,
                               const device::Precision& precision, int runs);

}  // namespace hpcai::speed
