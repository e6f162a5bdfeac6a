// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace hpcai::results {

/// Checks the trained weights of group `group` in the result directory against the model of its
/// config.yaml and writes them to `output` as safetensors under torchvision's names. Throws
/// Error(usage) if the directory or the group has no weights or `output` cannot be written,
/// Error(data) if the stored weights are damaged.
void export_weights(const std::filesystem::path& result_directory, int group,
                    const std::filesystem::path& output);

}  // namespace hpcai::results
