// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/graph/graph.hpp>

namespace hpcai::results {

/// Returns a Python module with the class Network, made of layers of torch.nn. It computes the
/// logits of a classifier for normalized images (N, C, H, W); its state dict has the names and
/// shapes of training::write_weights(). Throws Error(internal) for other networks than classifiers.
std::string pytorch_network(const graph::Graph& graph);

}  // namespace hpcai::results
