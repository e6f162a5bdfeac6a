// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <hpcai/graph/parameter_store.hpp>

namespace hpcai::training {

/// Writes parameters and running statistics durably as safetensors with torchvision's state-dict
/// names: filters (K, C, R, S), all tensors fp32, `num_batches_tracked` int64 scalars. Throws
/// Error(usage) if the file cannot be written.
void write_weights(const std::filesystem::path& path, const graph::Graph& graph,
                   graph::ParameterStore& store, std::int64_t steps_trained);

/// Reads a file of write_weights or torchvision. It must have every parameter and running statistic
/// of the graph with its shape in finite fp32, and no other tensors except `num_batches_tracked`.
/// Throws Error(data) with file and tensor; `store` is then unchanged.
void read_weights(const std::filesystem::path& path, const graph::Graph& graph,
                  graph::ParameterStore& store);

/// Reads the initial weights of a training run. A detector's file may also have a classifier's
/// weights: its names do not begin with "backbone.body.". They fill the backbone; "fc." tensors are
/// ignored, and the other parameters of the detector stay unchanged. Throws as read_weights.
void read_initial_weights(const std::filesystem::path& path, const graph::Graph& graph,
                          graph::ParameterStore& store);

/// Returns the SHA-256 of parameters and running statistics in the graph's order, in hexadecimal.
std::string training_digest(const graph::Graph& graph, graph::ParameterStore& store);

}  // namespace hpcai::training
