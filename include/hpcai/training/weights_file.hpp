// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/graph/parameter_store.hpp>
#include <hpcai/storage/safetensors.hpp>

namespace hpcai::training {

/// Converts an fp32 tensor of a file, (rows, channels, pixels), to (rows, pixels, channels).
std::vector<float> values_in_store(const storage::StoredTensor& tensor, std::int64_t rows,
                                   std::int64_t pixels);

/// Writes parameters and running statistics durably as safetensors with the names of the graph:
/// those of torchvision's state dict if torchvision has the model. Tensors are fp32; a convolution
/// has the shape (filters, channels, height, width). Each `num_batches_tracked`, an int64 scalar,
/// is `normalized_batches`: how often training has updated the running statistics. Throws
/// Error(usage) if the file cannot be written.
void write_weights(const std::filesystem::path& path, const graph::Graph& graph,
                   graph::ParameterStore& store, std::int64_t normalized_batches);

/// Reads a file of write_weights or torchvision. It must have every parameter and running statistic
/// of the graph with its shape in finite fp32, and no other tensors except `num_batches_tracked`.
/// Throws Error(data) with the file, and the tensor if one is wrong; `store` is then unchanged.
void read_weights(const std::filesystem::path& path, const graph::Graph& graph,
                  graph::ParameterStore& store);

/// Reads the initial weights of a training run. If the graph is a detector and no name in the file
/// begins with "backbone.body.", the file must hold a classifier. The classifier's tensors, except
/// "fc.*", fill the backbone; other parameters stay unchanged. Throws as read_weights.
void read_initial_weights(const std::filesystem::path& path, const graph::Graph& graph,
                          graph::ParameterStore& store);

/// Returns the SHA-256 of parameters and running statistics in the graph's order, in hexadecimal.
std::string training_digest(const graph::Graph& graph, graph::ParameterStore& store);

}  // namespace hpcai::training
