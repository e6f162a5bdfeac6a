// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// Readers of files in sysfs.
namespace hpcai::meters {

/// Returns the first line of `file`. Throws Error(data) naming the file and, if it applies, EACCES.
std::string first_line(const std::filesystem::path& file);

/// Returns the whole number that is the first line. Throws Error(data) naming the file.
std::uint64_t whole_number(const std::filesystem::path& file);

/// Returns the names in `folder`, sorted; none if it cannot be read.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace hpcai::meters
