// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "device/kernel_runner.hpp"
#include "device/random_problems.hpp"

namespace hpcai::device {
namespace {

class Pooling : public testing::TestWithParam<DeviceRow> {
protected:
    template <typename Operation>
    naive::Problem problem_of(const Operation& op) {
        return random_images(GetParam().compute, op);
    }
    /// The gradient of a pixel may be stored in the compute type while `windows` add to it.
    template <typename Operation>
    void expect_like_reference(const Operation& op, int windows = 1) {
        auto problem = problem_of(op);
        expect_agreement(GetParam(), problem, rounded(windows, GetParam().tolerance));
        problem.training = false;
        problem.output_gradients.clear();
        expect_agreement(GetParam(), problem);
    }
};

TEST_P(Pooling, MaximumAgreesWithReference) {
    for (const std::int64_t channels : {3, 8, 16, 24, 64}) {
        expect_like_reference(
            ops::MaxPool{.input = {2, 8, 8, channels}, .kernel = 3, .stride = 2, .padding = 1}, 4);
    }
    expect_like_reference(
        ops::MaxPool{.input = {2, 7, 9, 32}, .kernel = 3, .stride = 2, .padding = 1}, 4);
    expect_like_reference(
        ops::MaxPool{.input = {1, 1, 1, 16}, .kernel = 3, .stride = 2, .padding = 1}, 4);
    expect_like_reference(ops::MaxPool{.input = {2, 6, 6, 16}, .kernel = 2, .stride = 2});
    expect_like_reference(ops::MaxPool{.input = {2, 5, 5, 16}, .kernel = 3, .stride = 1}, 9);
}

TEST_P(Pooling, PaddingNeverWinsAgainstNegativeNumbers) {
    auto problem =
        problem_of(ops::MaxPool{.input = {2, 4, 4, 16}, .kernel = 3, .stride = 2, .padding = 1});
    for (double& value : problem.inputs[0].values) value = std::min(-std::abs(value), -0.125);
    expect_agreement(GetParam(), problem, rounded(4, GetParam().tolerance));
}

TEST_P(Pooling, TheFirstOfEqualMaximaGetsTheGradient) {
    // After a ReLU, most windows of a channel with negative values are all zero.
    auto problem =
        problem_of(ops::MaxPool{.input = {2, 9, 8, 24}, .kernel = 3, .stride = 2, .padding = 1});
    for (double& value : problem.inputs[0].values) value = std::floor(std::max(value, 0.0));
    expect_agreement(GetParam(), problem, rounded(4, GetParam().tolerance));
}

TEST_P(Pooling, GlobalAverageAgreesWithReference) {
    for (const std::int64_t channels : {2, 3, 8, 16, 24, 64, 100}) {
        expect_like_reference(ops::GlobalAveragePool{{3, 5, 4, channels}});
    }
    expect_like_reference(ops::GlobalAveragePool{{2, 1, 1, 32}});
}

INSTANTIATE_TEST_SUITE_P(Devices, Pooling, testing::ValuesIn(device_rows()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace hpcai::device
