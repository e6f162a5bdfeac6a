// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include <hpcai/tensor/dtype.hpp>

namespace hpcai::tests {

/// Returns the bits of a number that exists in the type, f16 or bf16.
inline std::uint16_t bits_of(double value, tensor::DType dtype) {
    const auto number = static_cast<float>(value);
    const auto bits = std::bit_cast<std::uint32_t>(number);
    if (dtype == tensor::DType::bf16) return static_cast<std::uint16_t>(bits >> 16);
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
    if (!std::isfinite(number)) return sign | (std::isnan(number) ? 0x7e00u : 0x7c00u);
    int exponent = 0;
    const double fraction = std::frexp(std::abs(value), &exponent);  // in [0.5, 1)
    if (value == 0 || exponent < -13)
        return static_cast<std::uint16_t>(sign | std::lround(std::abs(value) * 0x1p24));
    const auto digits = static_cast<std::uint32_t>(std::lround((2 * fraction - 1) * 1024));
    return static_cast<std::uint16_t>(sign |
                                      (static_cast<std::uint32_t>(exponent + 14) << 10 | digits));
}

}  // namespace hpcai::tests
