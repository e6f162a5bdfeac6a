// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace hpcai::data {

/// The bytes of a picture file. Throws DecodeError when it cannot be read, is no regular file (any
/// more), or is larger than any picture of legal dimensions should be.
std::vector<std::uint8_t> read_picture(const std::filesystem::path& path);

}  // namespace hpcai::data
