// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace hpcai::storage {

/// Makes a folder and those above it that are missing, and syncs every folder that one was made in.
/// Several processes may do so at once. Throws Error(usage) naming the folder.
void make_folder_durably(const std::filesystem::path& folder);

}  // namespace hpcai::storage
