// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <gtest/gtest.h>

#include "kernels/batch_norm.hpp"
#include "kernels/buffer.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels {
namespace reference {

inline void frozen_norm_gradient(const BatchNormShape& shape,
                                 const FrozenNormGradientArguments& arguments, Stream) {
    for (std::int64_t i = 0; i < shape.pixels * shape.channels; ++i) {
        double gradient = get(shape.dtype, arguments.dy0, i);
        if (arguments.dy1 != nullptr) gradient += get(shape.dtype, arguments.dy1, i);
        if (arguments.y != nullptr && get(shape.dtype, arguments.y, i) <= 0) gradient = 0;
        if (arguments.residual_gradient != nullptr) {
            put(shape.dtype, arguments.residual_gradient, i, gradient);
        }
        if (arguments.dx != nullptr) {
            put(shape.dtype, arguments.dx, i, arguments.scale[i % shape.channels] * gradient);
        }
    }
}

}  // namespace reference

namespace {

class FrozenNormKernel : public ForEachDtype {};

TEST_P(FrozenNormKernel, GradientsAreTheReferencesBitForBit) {
    Contents contents(32);
    for (const auto& [pixels, channels] : std::vector<std::array<std::int64_t, 2>>{{1, 8},
                                                                                   {63, 4},
                                                                                   {126, 4},
                                                                                   {125, 12},
                                                                                   {126, 12},
                                                                                   {37, 21},
                                                                                   {999, 64},
                                                                                   {5, 600},
                                                                                   {2000, 256}}) {
        const BatchNormShape shape{GetParam(), 1, pixels, channels};
        const std::int64_t count = pixels * channels;
        const Buffer y = contents.normal(GetParam(), count),
                     scale = contents.normal(DType::f32, channels);
        const Buffer dy0 = contents.normal(GetParam(), count);
        const Buffer dy1 = contents.normal(GetParam(), count);
        for (unsigned variant = 0; variant < 16; ++variant) {
            const auto choose = [&](unsigned bit, auto* address) {
                return variant & bit ? address : nullptr;
            };
            Buffer dx(GetParam(), count), dr(GetParam(), count);
            Buffer expected_dx = dx, expected_dr = dr;
            FrozenNormGradientArguments arguments{
                choose(1, y.data()),   dy0.data(),
                choose(2, dy1.data()), static_cast<const float*>(scale.data()),
                choose(4, dx.data()),  choose(8, dr.data())};
            frozen_norm_gradient(shape, arguments, nullptr);
            arguments.dx = choose(4, expected_dx.data());
            arguments.residual_gradient = choose(8, expected_dr.data());
            reference::frozen_norm_gradient(shape, arguments, nullptr);
            SCOPED_TRACE(
                testing::PrintToString(std::array{pixels, channels, std::int64_t{variant}}));
            if ((variant & 6) == 6) {
                // The product of a sum is rounded twice in fp32, and then to the type.
                EXPECT_TRUE(near(dx, expected_dx, 2 * tolerance_of(GetParam())));
            } else {
                EXPECT_TRUE(same(dx, expected_dx));
            }
            EXPECT_TRUE(same(dr, expected_dr));
        }
    }
}

TEST_P(FrozenNormKernel, GradientMayTakeThePlaceOfTheOutputs) {
    Contents contents(33);
    const BatchNormShape shape{GetParam(), 1, 77, 24};
    const Buffer dy = contents.normal(GetParam(), 77 * 24), scale = contents.normal(DType::f32, 24);
    Buffer got = dy, expected(GetParam(), 77 * 24);
    const auto* factors = static_cast<const float*>(scale.data());
    frozen_norm_gradient(shape, {nullptr, got.data(), nullptr, factors, got.data()}, nullptr);
    reference::frozen_norm_gradient(shape, {nullptr, dy.data(), nullptr, factors, expected.data()},
                                    nullptr);
    EXPECT_TRUE(same(got, expected));
}

INSTANTIATE_TEST_SUITE_P(, FrozenNormKernel, testing::ValuesIn(kComputeDtypes), dtype_name);

}  // namespace
}  // namespace hpcai::kernels
