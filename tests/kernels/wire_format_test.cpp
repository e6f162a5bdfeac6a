// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <wire_format.hpp>

#include <hpcai/comm/wire_format.hpp>

#include "kernels/buffer.hpp"

/// The references of these kernels are comm::encode and the related functions, which tests/comm
/// compares with fp64.
namespace hpcai::kernels {
namespace {

using tensor::WireFormat;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Returns blocks of ordinary, tiny, huge, missing and non-finite numbers.
Buffer values_of(std::int64_t count, std::uint32_t seed) {
    Contents contents(seed);
    Buffer values = contents.normal(DType::f32, count);
    const std::vector<double> scales{1, 1e-38, 3e37, 0, 1e-4, 1e-41, 65000};
    for (std::int64_t i = 0; i < count; ++i) {
        const auto block = static_cast<std::size_t>(i) / comm::kWireBlock;
        values.set(i, values[i] * scales[block % scales.size()]);
    }
    for (std::int64_t i = 700; i < count; i += 1001) {
        values.set(i, i % 3 == 0 ? kInfinity : i % 3 == 1 ? -kInfinity : std::nan(""));
    }
    return values;
}

std::span<float> floats(Buffer& values) {
    return {values.as<float>(), static_cast<std::size_t>(values.count())};
}

class WireKernels : public testing::TestWithParam<WireFormat> {
protected:
    /// Returns memory for the encoded numbers, with a guard after it.
    static Buffer wire_for(std::int64_t count) {
        return {DType::u8, static_cast<std::int64_t>(
                               comm::wire_bytes(GetParam(), static_cast<std::size_t>(count)))};
    }
    static std::span<std::byte> bytes(Buffer& wire) { return {wire.as<std::byte>(), wire.bytes()}; }
};

const std::vector<std::int64_t> kWireCounts{1, 255, 256, 257, 4099, 70001};

TEST_P(WireKernels, GiveTheBitsOfTheirTwins) {
    for (const std::int64_t count : kWireCounts) {
        Buffer values = values_of(count, 1);
        Buffer wire = wire_for(count), wanted_wire = wire_for(count);
        encode_for_wire(GetParam(), floats(values), nullptr, wire.as<std::byte>(), nullptr);
        comm::encode(GetParam(), floats(values), bytes(wanted_wire), {});
        ASSERT_TRUE(wire.guard_is_intact());
        Buffer got(DType::f32, count), wanted(DType::f32, count);
        decode_from_wire(GetParam(), wanted_wire.as<std::byte>(), floats(got), nullptr);
        comm::decode(GetParam(), bytes(wanted_wire), floats(wanted));
        ASSERT_TRUE(same(got, wanted)) << count;

        Buffer sum = values_of(count, 2), wanted_sum(sum);
        add_from_wire(GetParam(), wire.as<std::byte>(), floats(sum), nullptr);
        comm::add_decoded(GetParam(), bytes(wanted_wire), floats(wanted_sum));
        ASSERT_TRUE(same(sum, wanted_sum)) << count;
    }
}

TEST_P(WireKernels, KeepTheResidualsOfTheirTwins) {
    constexpr std::int64_t kCount = 4099;
    Buffer residual(DType::f32, std::vector<double>(kCount)), wanted(residual);
    Buffer wire = wire_for(kCount), wanted_wire = wire_for(kCount);
    for (std::uint32_t step = 0; step < 3; ++step) {
        Buffer values = values_of(kCount, step);
        encode_for_wire(GetParam(), floats(values), residual.as<float>(), wire.as<std::byte>(),
                        nullptr);
        comm::encode(GetParam(), floats(values), bytes(wanted_wire), floats(wanted));
        ASSERT_TRUE(same(residual, wanted)) << step;
    }
}

INSTANTIATE_TEST_SUITE_P(, WireKernels,
                         testing::Values(WireFormat::fp32, WireFormat::bf16, WireFormat::fp16,
                                         WireFormat::int8),
                         [](const auto& format) {
                             return std::string(comm::name_of(format.param));
                         });

TEST(ErrorFeedback, IsForgottenAfterAStepWithASumThatIsNotFinite) {
    for (const float last : {1.0F, kInfinity, -kInfinity, std::nanf("")}) {
        constexpr std::int64_t kCount = 5000;
        Buffer values(DType::f32, std::vector<double>(kCount, 2));
        values.set(kCount - 1, last);
        Buffer residual(DType::f32, std::vector<double>(kCount, 3));
        Buffer flag(DType::s32, std::vector<double>{0});
        mark_skipped_unless_finite(floats(values), flag.as<int>(), nullptr);
        clear_if_skipped(flag.as<int>(), floats(residual), nullptr);
        const double kept = last == 1 ? 3 : 0;
        EXPECT_TRUE(same(residual, Buffer(DType::f32, std::vector<double>(kCount, kept)))) << last;
    }
}

}  // namespace
}  // namespace hpcai::kernels
