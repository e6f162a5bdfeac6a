// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hpcai::meters {

/// Reads the first line of `file`. Throws Error(data) naming the file and, if denied, EACCES.
std::string read_first_line(const std::filesystem::path& file);

/// Reads the first line as an unsigned integer. Throws Error(data) naming the file.
std::uint64_t read_unsigned(const std::filesystem::path& file);

/// Returns the sorted names in `folder`; an empty list if it cannot be read.
std::vector<std::string> list_names(const std::filesystem::path& folder);

}  // namespace hpcai::meters
