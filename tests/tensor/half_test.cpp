// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include <hpcai/tensor/half.hpp>

namespace hpcai::tensor {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Returns the value of a binary16 from its sign, exponent and fraction by definition.
double f16_by_definition(std::uint16_t half) {
    const int exponent = half >> 10 & 31;
    const double fraction = (half & 1023) / 1024.0;
    const double sign = half >> 15 ? -1 : 1;
    if (exponent == 31) return fraction == 0 ? sign * kInfinity : std::nan("");
    if (exponent == 0) return sign * std::ldexp(fraction, -14);
    return sign * std::ldexp(1 + fraction, exponent - 15);
}

TEST(Half, EveryF16IsReadAsDefinedAndWrittenBack) {
    for (std::uint32_t bits = 0; bits < 65536; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        const double expected = f16_by_definition(half);
        const float value = from_f16(half);
        if (std::isnan(expected)) {
            EXPECT_TRUE(std::isnan(value) && std::isnan(from_f16(to_f16(value))));
            continue;
        }
        ASSERT_EQ(value, expected) << bits;
        ASSERT_EQ(std::signbit(value), half >> 15) << bits;
        ASSERT_EQ(to_f16(value), half);
    }
}

/// Between each two neighbours, the middle rounds to the even one, and all other numbers to the
/// nearest.
template <typename To, typename From>
void expect_nearest(To to, From from, std::uint16_t first_infinity) {
    for (std::uint16_t half = 0; half + 1 < first_infinity; ++half) {
        const float low = from(half);
        const float high = from(static_cast<std::uint16_t>(half + 1));
        const float middle = low + (high - low) / 2;
        if (middle == low || middle == high) continue;  // fp32 has no number between
        const auto even = static_cast<std::uint16_t>(half + (half & 1));
        ASSERT_EQ(to(middle), even) << half;
        ASSERT_EQ(to(-middle), even | 0x8000) << half;
        ASSERT_EQ(to(std::nextafter(middle, 0.0f)), half) << half;
        ASSERT_EQ(to(std::nextafter(middle, kInfinity)), half + 1) << half;
    }
}

TEST(Half, F16IsTheNearestWithTiesToEven) {
    expect_nearest(to_f16, from_f16, 0x7C00);
}

TEST(Half, Bf16IsTheNearestWithTiesToEven) {
    expect_nearest(to_bf16, from_bf16, 0x7F80);
}

TEST(Half, WhatIsTooLargeIsInfinite) {
    EXPECT_EQ(to_f16(65504), 0x7BFF);
    EXPECT_EQ(to_f16(65519.99f), 0x7BFF);
    EXPECT_EQ(to_f16(65520), 0x7C00);
    EXPECT_EQ(to_f16(-1e30f), 0xFC00);
    EXPECT_EQ(to_f16(kInfinity), 0x7C00);
    EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7F80);
    EXPECT_EQ(to_bf16(-kInfinity), 0xFF80);
    EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::nanf("")))));
}

}  // namespace
}  // namespace hpcai::tensor
