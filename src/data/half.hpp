// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

/// Rounding of fp32 to 16 bits, to nearest and ties to even (IEEE 754).
namespace hpcai::data {

/// A finite value, or one that overflows to infinity, as bfloat16.
constexpr std::uint16_t bfloat16_bits(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

/// A finite value as binary16: subnormal below 2^-14, infinite from 65520 on.
constexpr std::uint16_t binary16_bits(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
    const std::uint32_t magnitude = bits & 0x7FFFFFFF;
    if (magnitude >= 0x477FF000) return sign | 0x7C00;
    if (magnitude < 0x38800000) {
        // Adding 0.5 leaves multiples of 2^-24, the subnormals' step, rounded by the addition.
        const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
        const std::uint32_t rounded = std::bit_cast<std::uint32_t>(shifted) - 0x3F000000;
        return static_cast<std::uint16_t>(sign | rounded);
    }
    const std::uint32_t rounded = magnitude + 0xFFF + ((magnitude >> 13) & 1);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

}  // namespace hpcai::data
