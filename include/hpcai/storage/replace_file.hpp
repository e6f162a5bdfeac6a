// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace hpcai::storage {

/// Replaces the file at `path` by `text` as write_file_durably does, but without waiting for a
/// disk: a reader sees the old file or the whole new one, a machine that restarts may see neither.
void replace_file(const std::filesystem::path& path, std::string_view text);

}  // namespace hpcai::storage
