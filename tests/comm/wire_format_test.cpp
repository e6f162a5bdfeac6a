// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>
#include <hpcai/comm/wire_format.hpp>
#include <hpcai/tensor/half.hpp>

namespace hpcai::comm {
namespace {

constexpr WireFormat kAll[] = {WireFormat::fp32, WireFormat::bf16, WireFormat::fp16,
                               WireFormat::int8};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<std::byte> encoded(WireFormat format, const std::vector<float>& values,
                               std::vector<float>* residual = nullptr) {
    std::vector<std::byte> wire(wire_bytes(format, values.size()));
    encode(format, values, wire, residual == nullptr ? std::span<float>() : *residual);
    return wire;
}

std::vector<float> decoded(WireFormat format, const std::vector<std::byte>& wire,
                           std::size_t count) {
    std::vector<float> values(count, -7);
    decode(format, wire, values);
    return values;
}

std::vector<float> sent(WireFormat format, const std::vector<float>& values) {
    return decoded(format, encoded(format, values), values.size());
}

/// Returns the value as its definition in fp64 does. Shares with the tested code only the formats
/// and the number to which the largest value of a block is scaled.
float naive_sent(WireFormat format, const std::vector<float>& values, std::size_t index) {
    const double value = values[index];
    if (format == WireFormat::fp32) return values[index];
    if (format == WireFormat::bf16) return tensor::from_bf16(tensor::to_bf16(values[index]));
    if (!std::isfinite(value)) return format == WireFormat::int8 ? kInfinity : values[index];
    double largest = 0;
    const std::size_t begin = index / 256 * 256;
    for (std::size_t i = begin; i < std::min(begin + 256, values.size()); ++i) {
        if (std::isfinite(values[i])) largest = std::max(largest, std::abs(double{values[i]}));
    }
    if (largest == 0) return values[index];
    if (format == WireFormat::int8) {
        if (largest < 1e-35F) return 0;
        const double scale = double{static_cast<float>(largest) / 127.0F};
        return static_cast<float>(
            std::nearbyint(double{values[index] * (127.0F / static_cast<float>(largest))}) * scale);
    }
    const int exponent = std::max(std::ilogb(largest), -112) - 14;
    const auto scaled = static_cast<float>(std::ldexp(value, -exponent));
    return static_cast<float>(
        std::ldexp(double{tensor::from_f16(tensor::to_f16(scaled))}, exponent));
}

std::vector<float> values_of_many_magnitudes(std::size_t count, std::uint32_t seed) {
    CounterStream random(41, RandomPurpose::test, seed, static_cast<std::uint32_t>(count), 0);
    std::vector<float> values(count);
    for (float& value : values) {
        value = static_cast<float>(random.normal() * std::exp(60 * random.uniform() - 30));
    }
    return values;
}

class WireFormats : public testing::TestWithParam<WireFormat> {};
INSTANTIATE_TEST_SUITE_P(, WireFormats, testing::ValuesIn(kAll),
                         [](const auto& one) { return std::string(name_of(one.param)); });

TEST_P(WireFormats, RoundAsTheyAreDefined) {
    for (const std::size_t count : {1, 2, 255, 256, 257, 511, 5000}) {
        const std::vector<float> values = values_of_many_magnitudes(count, 1);
        const std::vector<float> got = sent(GetParam(), values);
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(got[i], naive_sent(GetParam(), values, i)) << i << " of " << count;
        }
    }
}

TEST_P(WireFormats, RoundEveryExponentAndTiesAsTheyAreDefined) {
    std::vector<float> values;
    for (int exponent = -149; exponent < 127; ++exponent) {
        for (int fraction = 0; fraction < 64; ++fraction) {
            values.push_back(static_cast<float>(std::ldexp(64 + fraction, exponent - 6)));
            values.push_back(-values.back() * (1 + 0x1p-11F));
        }
    }
    const std::vector<float> got = sent(GetParam(), values);
    for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(got[i], naive_sent(GetParam(), values, i)) << values[i];
    }
}

TEST_P(WireFormats, NeverMakeAFiniteBlockInfinite) {
    std::vector<float> values(600, 1.0F);
    values[3] = 3e38F;
    values[259] = -3e38F;
    for (const float value : sent(GetParam(), values)) EXPECT_TRUE(std::isfinite(value)) << value;
}

TEST_P(WireFormats, KeepZerosAndTheSmallestNumbersWithoutNoise) {
    const std::vector<float> zeros(300, 0.0F);
    EXPECT_EQ(sent(GetParam(), zeros), zeros);
    const std::vector<float> tiny(300, std::numeric_limits<float>::denorm_min());
    for (const float value : sent(GetParam(), tiny)) {
        EXPECT_GE(value, 0);
        EXPECT_LE(value, 1e-38F);
    }
}

TEST_P(WireFormats, ValuesThatAreNotFiniteStaySoAndDoNotAffectTheirNeighbours) {
    std::vector<float> values(300, 2.0F);
    values[7] = kInfinity;
    values[8] = -kInfinity;
    values[9] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> got = sent(GetParam(), values);
    EXPECT_EQ(got[7], kInfinity);
    EXPECT_FALSE(std::isfinite(got[8]));
    EXPECT_FALSE(std::isfinite(got[9]));
    for (std::size_t i = 10; i < 300; ++i) EXPECT_EQ(got[i], 2.0F) << i;
}

TEST_P(WireFormats, ResidualsAreTheRoundingErrorsAndAreAddedTheNextTime) {
    const std::vector<float> values = values_of_many_magnitudes(700, 2);
    std::vector<float> residual(values.size(), 0.0F);
    if (GetParam() == WireFormat::fp32) return;  // fp32 has no residual
    const auto first = decoded(GetParam(), encoded(GetParam(), values, &residual), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(residual[i], values[i] - first[i]);
    std::vector<float> wanted(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) wanted[i] = values[i] + residual[i];
    const auto second = decoded(GetParam(), encoded(GetParam(), values, &residual), values.size());
    EXPECT_EQ(second, sent(GetParam(), wanted));
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(residual[i], wanted[i] - second[i]);
}

TEST_P(WireFormats, ResidualsAreZeroWhereAnErrorIsNotFinite) {
    std::vector<float> values(300, 2.0F), residual(300, 0.25F);
    values[7] = kInfinity;
    values[8] = std::numeric_limits<float>::quiet_NaN();
    encoded(GetParam() == WireFormat::fp32 ? WireFormat::bf16 : GetParam(), values, &residual);
    for (const float one : residual) EXPECT_TRUE(std::isfinite(one));
    EXPECT_EQ(residual[7], 0);
    EXPECT_EQ(residual[8], 0);
}

TEST_P(WireFormats, AddDecodedIsDecodeAndAdd) {
    const std::vector<float> terms = values_of_many_magnitudes(700, 3);
    std::vector<float> sum = values_of_many_magnitudes(700, 4), want = sum;
    const auto wire = encoded(GetParam(), terms);
    const auto added = decoded(GetParam(), wire, terms.size());
    for (std::size_t i = 0; i < sum.size(); ++i) want[i] += added[i];
    add_decoded(GetParam(), wire, sum);
    EXPECT_EQ(sum, want);
}

TEST_P(WireFormats, BuffersOfAnotherSizeAreRejected) {
    std::vector<float> values(300), residual(299);
    std::vector<std::byte> wire(wire_bytes(GetParam(), 300) + 1);
    EXPECT_THROW(encode(GetParam(), values, wire, {}), Error);
    EXPECT_THROW(decode(GetParam(), wire, values), Error);
    EXPECT_THROW(add_decoded(GetParam(), wire, values), Error);
    wire.pop_back();
    EXPECT_THROW(encode(GetParam(), values, wire, residual), Error);
}

TEST(WireBytes, AreThoseOfValuesAndOfAScaleForEachBlock) {
    EXPECT_EQ(wire_bytes(WireFormat::fp32, 1000), 4000u);
    EXPECT_EQ(wire_bytes(WireFormat::bf16, 1000), 2000u);
    EXPECT_EQ(wire_bytes(WireFormat::bf16, 1), 4u);
    EXPECT_EQ(wire_bytes(WireFormat::fp16, 1000), 2000u + 4 * 4);
    EXPECT_EQ(wire_bytes(WireFormat::int8, 1000), 1000u + 4 * 4);
    EXPECT_EQ(wire_bytes(WireFormat::int8, 257), 260u + 2 * 4);
    for (const WireFormat format : kAll) EXPECT_EQ(wire_bytes(format, 0), 0u);
}

}  // namespace
}  // namespace hpcai::comm
