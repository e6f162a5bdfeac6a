// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/graph/graph.hpp>
#include <hpcai/ops/pass.hpp>
#include <hpcai/tensor/dtype.hpp>

namespace hpcai::metrics {

/// Returns the bytes that a node reads and writes in one pass if caches keep nothing between
/// operations: each tensor once, without padding. Values and their gradients are in `compute`
/// unless they have their own type; gradients of parameters are in fp32. A lower bound. Only valid
/// for a pass that the node has.
///
///   forward            inputs, filters and weights, output
///   weight_gradient    inputs, the output's gradient, gradients of the parameters
///   input_gradient     the output's gradient, filters and weights, the inputs' gradients; also
///                      the inputs or output of the forward pass, if a normalization, a ReLU or
///                      a loss needs them
///   prepare            parameters in fp32 and in `compute`
double moved_bytes(const graph::Graph& graph, const graph::Node& node, ops::Pass pass,
                   tensor::DType compute);

}  // namespace hpcai::metrics
