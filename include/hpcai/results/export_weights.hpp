// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

#include <hpcai/graph/graph.hpp>

namespace hpcai::results {

struct ExportedModel {
    int group = 0;
    graph::Graph graph;
};

/// Checks the trained weights of group `group_number` (absent: the group with the highest quality
/// in result.json) against the model of config.yaml. Writes them to `output` as safetensors under
/// torchvision's names. Throws Error(usage) if the directory is not that of one run or has no
/// weights of the group, or if `output` cannot be written. Throws Error(data) if the stored files
/// are damaged. Without `group_number`, also throws as read_result().
ExportedModel export_weights(const std::filesystem::path& result_directory,
                             std::optional<int> group_number, const std::filesystem::path& output);

}  // namespace hpcai::results
