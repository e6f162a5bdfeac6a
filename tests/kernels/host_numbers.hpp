// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include <hpcai/tensor/dtype.hpp>

#include "kernels/stream.hpp"

namespace hpcai::kernels::reference {

// Implemented from the formats' definitions (IEEE 754-2019, section 3.4), without CUDA's headers.

inline double from_f16(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double size = exponent == 0    ? std::ldexp(fraction, -24)
                        : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                         : std::ldexp(1024 + fraction, exponent - 25);
    return bits >> 15 != 0 ? -size : size;
}

inline std::uint16_t to_f16(float value) {
    const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
    const double size = std::fabs(static_cast<double>(value));
    if (std::isnan(value)) return 0x7fff;
    if (size == 0) return sign;
    if (size >= 65520) return static_cast<std::uint16_t>(sign | 0x7c00);
    int exponent = 0;
    std::frexp(size, &exponent);  // size = f 2^exponent, 1/2 <= f < 1
    const int unit = std::max(exponent - 11, -24);
    // Steps of 2^unit; a carry moves into the exponent's bits.
    const double steps = std::nearbyint(std::ldexp(size, -unit));
    return static_cast<std::uint16_t>(sign + ((unit + 24) << 10) + static_cast<int>(steps));
}

inline std::uint16_t to_bf16(float value) {
    if (std::isnan(value)) return 0x7fff;
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Returns element `index` of a buffer of f32, f16 or bf16 on the host.
inline double get(tensor::DType dtype, const void* from, std::int64_t index) {
    if (dtype == tensor::DType::f32) return static_cast<const float*>(from)[index];
    const std::uint16_t bits = static_cast<const std::uint16_t*>(from)[index];
    if (dtype == tensor::DType::f16) return from_f16(bits);
    if (dtype != tensor::DType::bf16) fail("kernels do not compute in", name_of(dtype).data());
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Writes `value`, rounded to fp32 and then to `dtype`, ties to even. A number too large for f16
/// becomes infinite.
inline void put(tensor::DType dtype, void* to, std::int64_t index, double value) {
    const auto single = static_cast<float>(value);
    if (dtype == tensor::DType::f32) {
        static_cast<float*>(to)[index] = single;
        return;
    }
    if (dtype != tensor::DType::f16 && dtype != tensor::DType::bf16) {
        fail("kernels do not compute in", name_of(dtype).data());
    }
    static_cast<std::uint16_t*>(to)[index] =
        dtype == tensor::DType::f16 ? to_f16(single) : to_bf16(single);
}

}  // namespace hpcai::kernels::reference
