// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <hpcai/data/jpeg.hpp>
#include <hpcai/data/staging_lock.hpp>

namespace hpcai::data {

/// Upper bound for the file of an image with legal dimensions.
inline constexpr std::int64_t kMaxPictureBytes = std::int64_t{512} << 20;

/// Reads an image file. Throws DecodeError if it cannot be read, is not a regular file, or has
/// more than kMaxPictureBytes bytes.
std::vector<std::uint8_t> read_picture(const std::filesystem::path& path);

/// Reads the copy of the sample in `staged`, or the file at `path` if there is none.
std::vector<std::uint8_t> read_picture(const StagedPictures* staged, std::uint32_t sample,
                                       const std::filesystem::path& path);

inline std::span<std::uint8_t> as_u8(std::span<std::byte> pixels) {
    return {reinterpret_cast<std::uint8_t*>(pixels.data()), pixels.size()};
}

/// Returns decode(). After a DecodeError, fills the pixels with grey and returns the reason.
template <typename Decode>
std::string decode_or_grey(std::span<std::uint8_t> pixels, const Decode& decode) {
    constexpr std::uint8_t kGrey = 128;
    try {
        return decode();
    } catch (const DecodeError& error) {
        std::fill(pixels.begin(), pixels.end(), kGrey);
        return error.what();
    }
}

/// Returns whether a path from a file is relative and stays below its folder.
inline bool is_path_below(const std::string& path) {
    const std::filesystem::path parsed(path);
    if (path.empty() || parsed.is_absolute() || path.find('\0') != std::string::npos) return false;
    for (const std::filesystem::path& part : parsed) {
        if (part == "..") return false;
    }
    return true;
}

}  // namespace hpcai::data
