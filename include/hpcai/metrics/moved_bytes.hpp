// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/graph/graph.hpp>
#include <hpcai/ops/pass.hpp>
#include <hpcai/tensor/dtype.hpp>

namespace hpcai::metrics {

/// Bytes that a node has to read and write in one pass where caches keep nothing from one operation
/// to the next: each tensor once, values and their gradients in `compute` unless they have a type
/// of their own, gradients of parameters in fp32, of a value without padding. A lower bound; 0 of a
/// pass in which it does nothing.
///
///   forward            inputs, filters and weights, output
///   weight_gradient    inputs, the output's gradient, gradients of the parameters
///   input_gradient     the output's gradient, filters and weights, the inputs' gradients; where a
///                      normalization, a ReLU or a loss needs them, what the forward pass read or
///                      wrote
///   prepare            parameters in fp32 and in `compute`
double moved_bytes(const graph::Graph& graph, const graph::Node& node, ops::Pass pass,
                   tensor::DType compute);

}  // namespace hpcai::metrics
