// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <hpcai/data/staged_pictures.hpp>

namespace hpcai::data {

/// Larger files are no pictures of legal dimensions.
inline constexpr std::int64_t kMaximumPictureBytes = std::int64_t{512} << 20;

/// The bytes of a picture file. Throws DecodeError when it cannot be read, is no regular file (any
/// more), or is larger than any picture of legal dimensions should be.
std::vector<std::uint8_t> read_picture(const std::filesystem::path& path);

/// Likewise of a sample's copy in `staged`, where there is one; else of the file at `path`.
std::vector<std::uint8_t> read_picture(const StagedPictures* staged, std::uint32_t sample,
                                       const std::filesystem::path& path);

}  // namespace hpcai::data
