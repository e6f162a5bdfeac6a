// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/graph/graph.hpp>
#include <hpcai/ops/pass.hpp>
#include <hpcai/tensor/dtype.hpp>

namespace hpcai::metrics {

/// Returns the bytes that a node reads and writes in one pass if caches keep nothing between
/// operations: each tensor once, without padding. This is a lower bound. Values without a dtype,
/// gradients of values, filters and weights have the type `compute`; other parameters and all
/// gradients of parameters are fp32. The node must have `pass`.
///
///   forward            inputs, parameters, output
///   weight_gradient    inputs, the output's gradient, gradients of the parameters
///   input_gradient     the output's gradient, parameters, the inputs' gradients; also inputs and
///                      output of the forward pass if the operation needs them
///   prepare            each parameter in fp32 and in the type that the forward pass reads
double moved_bytes(const graph::Graph& graph, const graph::Node& node, ops::Pass pass,
                   tensor::DType compute);

}  // namespace hpcai::metrics
