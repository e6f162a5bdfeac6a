// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

/// Conversions between fp32 and 16-bit formats, rounded to nearest even.
namespace hpcai::tensor {

/// Converts to IEEE 754 binary16; overflow gives infinity.
constexpr std::uint16_t to_f16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits & 0x80000000U;
    const std::uint32_t magnitude = bits ^ sign;
    // 0x38800000 is 2^-14, the smallest normal result; values from 0x47800000, 2^16, overflow.
    // After adding 0.5, the low bits of the sum are those of a subnormal result, rounded.
    // 0xC8000FFF changes the exponent's bias from 127 to 15 and rounds 13 bits off.
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000U;
    const std::uint32_t normal = (magnitude + 0xC8000FFFU + (magnitude >> 13 & 1U)) >> 13;
    const std::uint32_t special = magnitude > 0x7F800000U ? 0x7E00U : 0x7C00U;
    std::uint32_t result = magnitude < 0x38800000U ? subnormal : normal;
    if (magnitude >= 0x47800000U) result = special;
    return static_cast<std::uint16_t>(result | sign >> 16);
}

constexpr float from_f16(std::uint16_t half) {
    const std::uint32_t sign = std::uint32_t{half} << 16 & 0x80000000U;
    const std::uint32_t magnitude = (std::uint32_t{half} & 0x7FFFU) << 13;
    // 2^112 changes the exponent's bias from 15 to 127, also of a subnormal number.
    std::uint32_t bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
    const bool is_finite = magnitude < 0x0F800000U;
    if (!is_finite) bits |= 0x7F800000U;
    return std::bit_cast<float>(bits | sign);
}

/// Converts to bfloat16, the upper half of an fp32 number.
constexpr std::uint16_t to_bf16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
    const std::uint32_t rounded = bits + 0x7FFFU + (bits >> 16 & 1U);
    return static_cast<std::uint16_t>((is_nan ? bits | 0x400000U : rounded) >> 16);
}

constexpr float from_bf16(std::uint16_t half) {
    return std::bit_cast<float>(std::uint32_t{half} << 16);
}

}  // namespace hpcai::tensor
