// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace hpcai::data {

/// Whether a path, as some file has it, stays in the folder that it starts from.
inline bool is_path_below(const std::string& path) {
    const std::filesystem::path parsed(path);
    if (path.empty() || parsed.is_absolute() || path.find('\0') != std::string::npos) return false;
    for (const std::filesystem::path& part : parsed) {
        if (part == "..") return false;
    }
    return true;
}

}  // namespace hpcai::data
