// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// The kernel's small files.
namespace hpcai::meters {

/// The first line of `file`. Throws Error(data) naming the file, and EACCES where it is that.
std::string first_line(const std::filesystem::path& file);

/// The whole number that the line is. Throws likewise.
std::uint64_t whole_number(const std::filesystem::path& file);

/// Names in `folder`, in order; none where it cannot be read.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace hpcai::meters
