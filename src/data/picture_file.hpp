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
#include <hpcai/data/staged_pictures.hpp>

namespace hpcai::data {

/// Larger files are no pictures of legal dimensions.
inline constexpr std::int64_t kMaxPictureBytes = std::int64_t{512} << 20;

/// The bytes of a picture file. Throws DecodeError when it cannot be read, is no regular file (any
/// more), or is larger than any picture of legal dimensions should be.
std::vector<std::uint8_t> read_picture(const std::filesystem::path& path);

/// Likewise of a sample's copy in `staged`, where there is one; else of the file at `path`.
std::vector<std::uint8_t> read_picture(const StagedPictures* staged, std::uint32_t sample,
                                       const std::filesystem::path& path);

inline std::span<std::uint8_t> as_u8(std::span<std::byte> pixels) {
    return {reinterpret_cast<std::uint8_t*>(pixels.data()), pixels.size()};
}

/// What decode() returns; where it throws a DecodeError, the pixels become grey and its reason is
/// returned.
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

}  // namespace hpcai::data
