// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "device/kernel_runner.hpp"
#include "device/random_problems.hpp"

namespace hpcai::device {
namespace {

class BatchNorm : public testing::TestWithParam<DeviceRow> {
protected:
    naive::Problem problem_of(const ops::BatchNorm& op, int output_gradients = 1,
                              double mean = 0.5) {
        return random_batch_norm(GetParam().compute, op, output_gradients, mean);
    }
    /// The sum of two output gradients may be stored in the compute type; sums over it then use the
    /// rounded values.
    void expect_like_reference(const ops::BatchNorm& op, int output_gradients = 1) {
        Tolerance tolerance = rounded(output_gradients, GetParam().tolerance);
        if (output_gradients > 1) tolerance.fp32 = tolerance.stored;
        expect_agreement(GetParam(), problem_of(op, output_gradients), tolerance);
    }
};

TEST_P(BatchNorm, AgreesWithReferenceForAnyNumberOfChannels) {
    for (const std::int64_t channels : {3, 8, 16, 24, 64, 21}) {
        expect_like_reference({.input = {3, 5, 6, channels}});
    }
    // The only scale gradient is a sum whose terms nearly cancel.
    expect_agreement(GetParam(), problem_of({.input = {3, 5, 6, 1}}),
                     {GetParam().tolerance.stored, 5e-6});
}

TEST_P(BatchNorm, AgreesWithReferenceForManyAndForSinglePixels) {
    expect_like_reference({.input = {2, 23, 25, 16}, .relu = true});
    expect_like_reference({.input = {4, 1, 1, 32}, .relu = true});
    expect_like_reference({.input = {5, 1, 1, 8}});
}

TEST_P(BatchNorm, AgreesWithReferenceWithRelu) {
    expect_like_reference({.input = {4, 6, 5, 32}, .relu = true});
    expect_like_reference({.input = {4, 6, 5, 12}, .relu = true});
}

TEST_P(BatchNorm, AgreesWithReferenceWithAdditionAndRelu) {
    expect_like_reference({.input = {4, 6, 5, 32}, .add = true, .relu = true});
    expect_like_reference({.input = {4, 6, 5, 12}, .add = true, .relu = true});
}

TEST_P(BatchNorm, AddsUpTwoOutputGradients) {
    expect_like_reference({.input = {2, 6, 5, 32}}, 2);
    expect_like_reference({.input = {2, 6, 5, 32}, .relu = true}, 2);
    expect_like_reference({.input = {2, 6, 5, 32}, .add = true, .relu = true}, 2);
}

TEST_P(BatchNorm, NormalizesSpansOfSamplesSeparately) {
    expect_like_reference({.input = {6, 4, 3, 16}, .statistics_samples = 2});
    expect_like_reference({.input = {6, 4, 3, 3}, .statistics_samples = 3, .relu = true});
    expect_like_reference(
        {.input = {6, 4, 3, 16}, .statistics_samples = 1, .add = true, .relu = true}, 2);
    expect_like_reference({.input = {6, 4, 3, 16}, .statistics_samples = 6});
}

TEST_P(BatchNorm, TakesEpsilonAndMomentumFromTheDescription) {
    expect_like_reference({.input = {2, 4, 4, 16}, .epsilon = 0.5, .momentum = 0.01});
    expect_like_reference({.input = {2, 4, 4, 16}, .momentum = 1});
}

TEST_P(BatchNorm, UsesRunningStatisticsForInference) {
    for (const bool add : {false, true}) {
        for (const std::int64_t channels : {16, 12}) {
            auto problem = problem_of({.input = {3, 4, 5, channels}, .add = add, .relu = add}, 0);
            problem.training = false;
            expect_agreement(GetParam(), problem);
        }
    }
}

TEST_P(BatchNorm, IgnoresSpansForInference) {
    auto problem = problem_of({.input = {6, 4, 5, 16}, .statistics_samples = 2}, 0);
    problem.training = false;
    expect_agreement(GetParam(), problem);
}

TEST_P(BatchNorm, GivesTheShiftForAConstantChannel) {
    auto problem = problem_of({.input = {2, 4, 4, 16}});
    for (std::int64_t i = 0; i < 2 * 4 * 4 * 16; ++i) {
        if (i % 16 == 5) problem.inputs[0][i] = 3.25;
    }
    // The deviation is sqrt(epsilon), so an output may be the difference of two rounded numbers
    // near a thousand.
    expect_agreement(GetParam(), problem, rounded(4, GetParam().tolerance));
}

TEST_P(BatchNorm, KeepsItsPrecisionFarFromZero) {
    // With fp32 numbers around 1e4, E[x^2] - E[x]^2 would be wrong by about 10; the variance is 1.
    const bool fp32 = GetParam().compute == tensor::DType::f32;
    const double mean = fp32 ? 1e4 : 100, rounding = mean * 0x1p-23;
    expect_agreement(GetParam(), problem_of({.input = {4, 20, 20, 16}}, 1, mean),
                     {fp32 ? 4 * rounding : 8e-3, std::max(4 * rounding, 1e-4)});
}

TEST_P(BatchNorm, WritesNoInputGradientWhereNoneIsWanted) {
    const auto problem = problem_of({.input = {2, 4, 4, 16}, .relu = true});
    const auto got = KernelRunner(GetParam(), problem).run({false});
    const auto want = naive::solve(problem);
    for (int i = 0; i < 2; ++i) {
        const auto parameter = static_cast<std::size_t>(i);
        expect_close(got.parameter_gradients[parameter], want.parameter_gradients[parameter], 1e-4,
                     "parameter gradient");
    }
}

TEST_P(BatchNorm, RejectsAnAdditionWithoutRelu) {
    const auto device = GetParam().make();
    EXPECT_THROW(device->build(ops::BatchNorm{.input = {2, 4, 4, 16}, .add = true},
                               {.compute = GetParam().compute}),
                 Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchNorm, testing::ValuesIn(device_rows()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace hpcai::device
