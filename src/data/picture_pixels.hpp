// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <hpcai/data/jpeg.hpp>

namespace hpcai::data {

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
