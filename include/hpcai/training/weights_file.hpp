// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <hpcai/graph/parameter_store.hpp>

namespace hpcai::training {

/// Writes parameters and running statistics as safetensors under torchvision's state-dict names:
/// filters (K, C, R, S), everything fp32, `num_batches_tracked` as int64 scalars. Durable.
/// Throws Error(usage) when the file cannot be written.
void write_weights(const std::filesystem::path& path, const graph::Graph& graph,
                   graph::ParameterStore& store, std::int64_t steps_trained);

/// Reads what write_weights or torchvision wrote. Every parameter and running statistic of the
/// graph must be there with its shape, in finite fp32; other tensors are refused,
/// `num_batches_tracked` apart. Throws Error(data) naming file and tensor; `store` is then
/// unchanged.
void read_weights(const std::filesystem::path& path, const graph::Graph& graph,
                  graph::ParameterStore& store);

/// Reads the weights for a training's start. Those of a classifier, which has the backbone's names
/// without "backbone.body.", fill a detector's backbone; the rest of the detector stays as it is.
/// Throws as read_weights.
void read_initial_weights(const std::filesystem::path& path, const graph::Graph& graph,
                          graph::ParameterStore& store);

/// SHA-256 of parameters and running statistics in the graph's order, as hexadecimal digits.
std::string training_digest(const graph::Graph& graph, graph::ParameterStore& store);

}  // namespace hpcai::training
