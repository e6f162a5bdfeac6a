// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/ops/operation.hpp>

namespace hpcai::ops {
namespace {

const Convolution k3x3{.input = {2, 8, 8, 64}, .filters = 64, .kernel = 3, .padding = 1};

bool forward(const Convolution& op) {
    return computes_in_int8(op, Pass::forward);
}

bool backward(const Convolution& op) {
    return computes_in_int8(op, Pass::input_gradient);
}

Convolution with(std::int64_t channels, std::int64_t filters) {
    Convolution op = k3x3;
    op.input[3] = channels;
    op.filters = filters;
    return op;
}

TEST(ComputesInInt8, TakesOutputAndInputGradientButNoGradientOfFilters) {
    EXPECT_TRUE(forward(k3x3));
    EXPECT_TRUE(backward(k3x3));
    EXPECT_FALSE(computes_in_int8(k3x3, Pass::weight_gradient));
    EXPECT_FALSE(computes_in_int8(k3x3, Pass::prepare));
}

TEST(ComputesInInt8, OmitsImagesOfFewChannels) {
    for (const std::int64_t few : {3, 16, 31}) {
        EXPECT_FALSE(forward(with(few, 64))) << few;
        EXPECT_FALSE(backward(with(few, 64))) << few;
    }
    EXPECT_TRUE(forward(with(32, 16)));
    EXPECT_TRUE(backward(with(32, 16)));
}

TEST(ComputesInInt8, RequiresMultiplesOfSixteenChannelsInBothImages) {
    EXPECT_TRUE(forward(with(48, 80)));
    for (const std::int64_t odd : {40, 63, 65}) {
        EXPECT_FALSE(forward(with(odd, 64))) << odd;
        EXPECT_FALSE(backward(with(odd, 64))) << odd;
        EXPECT_FALSE(forward(with(64, odd))) << odd;
        EXPECT_FALSE(backward(with(64, odd))) << odd;
    }
}

TEST(ComputesInInt8, HasGradientsOfStrideOneAndNoMorePaddingThanTaps) {
    Convolution op = k3x3;
    op.stride = 2;
    EXPECT_TRUE(forward(op));
    EXPECT_FALSE(backward(op));
    op = k3x3;
    op.padding = 2;
    EXPECT_TRUE(backward(op));
    op.padding = 3;
    EXPECT_TRUE(forward(op));
    EXPECT_FALSE(backward(op));
}

TEST(ComputesInInt8, SumsUpToTwoToTheSixteenthTerms) {
    const std::int64_t most = 7280;  // 9 x 7280 = 65520
    EXPECT_TRUE(forward(with(most, 64)));
    EXPECT_TRUE(backward(with(64, most)));
    EXPECT_FALSE(forward(with(most + 16, 64)));
    EXPECT_FALSE(backward(with(most + 16, 64))) << "without its forward pass";
    EXPECT_TRUE(forward(with(64, most + 16)));
    EXPECT_FALSE(backward(with(64, most + 16)));
    const Convolution linear{.input = {1, 1, 1, 65536}, .filters = 65536};
    EXPECT_TRUE(forward(linear));
    EXPECT_TRUE(backward(linear));
}

}  // namespace
}  // namespace hpcai::ops
