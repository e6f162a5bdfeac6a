// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/reference/naive_random.hpp>

#include "device/kernel_runner.hpp"

namespace hpcai::device {
namespace {

class Convolution : public testing::TestWithParam<DeviceRow> {
protected:
    void expect_like_reference(const ops::Convolution& op) {
        naive::Random random(GetParam().compute, 1);
        naive::Problem problem{.operation = op};
        problem.inputs = {random.normal(op.input)};
        problem.parameters = {random.normal({op.filters, op.kernel, op.kernel, op.input[3]})};
        problem.output_gradients = {random.normal(output_shape(op))};
        expect_agreement(GetParam(), problem);
    }
    void expect_first_layer_like_reference(const ops::Convolution& op) {
        for (const bool training : {true, false}) {
            naive::Random random(GetParam().compute, 1);
            naive::Problem problem{.operation = op, .training = training, .is_first_layer = true};
            problem.inputs = {random.normal(op.input)};
            problem.parameters = {random.normal({op.filters, op.kernel, op.kernel, op.input[3]})};
            if (training) problem.output_gradients = {random.normal(output_shape(op))};
            expect_agreement(GetParam(), problem);
        }
    }
};

TEST_P(Convolution, AgreesWithReferenceFor1x1) {
    expect_like_reference({.input = {2, 5, 7, 32}, .filters = 16, .kernel = 1});
    expect_like_reference({.input = {3, 4, 4, 64}, .filters = 128, .kernel = 1});
    expect_like_reference({.input = {2, 1, 1, 16}, .filters = 64, .kernel = 1});
}

TEST_P(Convolution, AgreesWithReferenceFor1x1WithStride) {
    expect_like_reference({.input = {2, 8, 8, 32}, .filters = 64, .kernel = 1, .stride = 2});
    expect_like_reference({.input = {2, 7, 5, 16}, .filters = 32, .kernel = 1, .stride = 2});
}

TEST_P(Convolution, AgreesWithReferenceFor3x3) {
    expect_like_reference(
        {.input = {2, 7, 9, 16}, .filters = 32, .kernel = 3, .stride = 1, .padding = 1});
    expect_like_reference(
        {.input = {1, 3, 3, 64}, .filters = 64, .kernel = 3, .stride = 1, .padding = 1});
    expect_like_reference(
        {.input = {2, 1, 1, 32}, .filters = 32, .kernel = 3, .stride = 1, .padding = 1});
}

TEST_P(Convolution, AgreesWithReferenceFor3x3WithStride) {
    expect_like_reference(
        {.input = {2, 8, 6, 32}, .filters = 16, .kernel = 3, .stride = 2, .padding = 1});
    expect_like_reference(
        {.input = {2, 7, 9, 16}, .filters = 48, .kernel = 3, .stride = 2, .padding = 1});
}

TEST_P(Convolution, AgreesWithReferenceForTheStem) {
    expect_like_reference(
        {.input = {2, 17, 16, 3}, .filters = 64, .kernel = 7, .stride = 2, .padding = 3});
    expect_like_reference(
        {.input = {2, 12, 13, 16}, .filters = 32, .kernel = 7, .stride = 2, .padding = 3});
    expect_like_reference(
        {.input = {2, 7, 8, 3}, .filters = 16, .kernel = 3, .stride = 2, .padding = 1});
    expect_like_reference(
        {.input = {2, 9, 10, 3}, .filters = 16, .kernel = 5, .stride = 2, .padding = 0});
    expect_like_reference(
        {.input = {2, 8, 10, 3}, .filters = 3, .kernel = 4, .stride = 2, .padding = 1});
    expect_like_reference(
        {.input = {1, 9, 9, 1}, .filters = 16, .kernel = 7, .stride = 2, .padding = 3});
    expect_like_reference(
        {.input = {1, 9, 9, 5}, .filters = 16, .kernel = 7, .stride = 2, .padding = 3});
}

TEST_P(Convolution, AgreesWithReferenceForFirstLayers) {
    for (const std::int64_t channels : {3, 4, 16}) {
        for (const std::int64_t height : {8, 9}) {
            expect_first_layer_like_reference({.input = {2, height, 14, channels},
                                               .filters = 64,
                                               .kernel = 7,
                                               .stride = 2,
                                               .padding = 3});
        }
    }
    expect_first_layer_like_reference(
        {.input = {3, 4, 6, 3}, .filters = 3, .kernel = 3, .stride = 2, .padding = 1});
    expect_first_layer_like_reference(
        {.input = {1, 2, 2, 8}, .filters = 8, .kernel = 3, .stride = 2, .padding = 1});
}

TEST_P(Convolution, AgreesWithReferenceForChannelsThatFillNoVector) {
    for (const std::int64_t channels : {3, 4, 8, 24}) {
        for (const std::int64_t filters : {2, 5, 8, 24}) {
            expect_like_reference({.input = {2, 6, 5, channels},
                                   .filters = filters,
                                   .kernel = 3,
                                   .stride = 1,
                                   .padding = 1});
            expect_like_reference(
                {.input = {2, 6, 5, channels}, .filters = filters, .kernel = 1, .stride = 2});
        }
    }
}

TEST_P(Convolution, AgreesWithReferenceBetweenBlockedAndPlainChannels) {
    expect_like_reference(
        {.input = {2, 6, 6, 8}, .filters = 32, .kernel = 3, .stride = 2, .padding = 1});
    expect_like_reference({.input = {2, 6, 6, 32}, .filters = 8, .kernel = 1});
    expect_like_reference({.input = {2, 6, 6, 2}, .filters = 32, .kernel = 1});
}

INSTANTIATE_TEST_SUITE_P(Devices, Convolution, testing::ValuesIn(device_rows()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace hpcai::device
