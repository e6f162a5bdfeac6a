// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/graph/graph.hpp>
#include <hpcai/ops/pass.hpp>
#include <hpcai/tensor/dtype.hpp>

namespace hpcai::metrics {

/// Returns the bytes that a node reads and writes in one pass if caches keep nothing between
/// operations: each tensor once, without padding. Values without a type of their own, gradients of
/// values, filters and weights are in `compute`; other parameters and all gradients of parameters
/// are in fp32. A lower bound. Only valid for a pass that the node has.
///
///   forward            inputs, parameters, output
///   weight_gradient    inputs, the output's gradient, gradients of the parameters
///   input_gradient     the output's gradient, parameters, the inputs' gradients; also inputs and
///                      output of the forward pass as far as the operation needs them
///   prepare            each parameter in fp32, and as the forward pass reads it
double moved_bytes(const graph::Graph& graph, const graph::Node& node, ops::Pass pass,
                   tensor::DType compute);

}  // namespace hpcai::metrics
