// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

namespace hpcai::results {

/// Checks the trained weights of group `group_number` (absent: the group with the highest quality
/// in result.json) against the model of config.yaml. Writes them to `output` as safetensors
/// under torchvision's names and returns the group's number. Throws Error(usage) if the directory
/// is not that of one run or has no weights of the group, or if `output` cannot be written; as
/// read_result() if it must choose a group; Error(data) if the stored files are damaged.
int export_weights(const std::filesystem::path& result_directory, std::optional<int> group_number,
                   const std::filesystem::path& output);

}  // namespace hpcai::results
