// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "device/kernel_runner.hpp"
#include "device/random_problems.hpp"

/// Operations of feature pyramids and detectors that classifiers do not use.
namespace hpcai::device {
namespace {

class Pyramid : public testing::TestWithParam<DeviceRow> {
protected:
    naive::Random random_{GetParam().compute, 8}, fp32_{tensor::DType::f32, 9};

    /// With two gradients, sums over their rounded sum have this tolerance too.
    void expect_like_reference(naive::Problem problem, int output_gradients = 1) {
        const tensor::Shape shape = output_shape(problem.operation);
        for (int i = 0; i < output_gradients; ++i) {
            problem.output_gradients.push_back(random_.normal(shape));
        }
        Tolerance tolerance = rounded(output_gradients, GetParam().tolerance);
        if (output_gradients > 1) tolerance.fp32 = tolerance.stored;
        tolerance.fp32 = std::max(tolerance.fp32, 2e-6);
        expect_agreement(GetParam(), problem, tolerance);
        problem.training = false;
        problem.output_gradients.clear();
        expect_agreement(GetParam(), problem, tolerance);
    }
};

TEST_P(Pyramid, BiasAgreesWithReference) {
    for (const std::int64_t channels : {3, 12, 16, 24, 64, 21}) {
        for (const bool relu : {false, true}) {
            for (const int gradients : {1, 2}) {
                naive::Problem problem{.operation = ops::Bias{{2, 9, 7, channels}, relu}};
                problem.inputs = {random_.normal({2, 9, 7, channels})};
                problem.parameters = {fp32_.normal({channels})};
                expect_like_reference(problem, gradients);
            }
        }
    }
}

TEST_P(Pyramid, BiasOfManyPixelsSumsTheirGradients) {
    naive::Problem problem{.operation = ops::Bias{{3, 40, 41, 16}}};
    problem.inputs = {random_.normal({3, 40, 41, 16})};
    problem.parameters = {fp32_.normal({16})};
    expect_like_reference(problem);
}

TEST_P(Pyramid, UpsampleAddAgreesWithReferenceForAnyRatio) {
    for (const std::int64_t channels : {3, 16, 24, 64}) {
        for (const auto& [height, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{
                 {3, 4}, {6, 8}, {5, 3}, {1, 1}, {7, 9}}) {
            const ops::UpsampleAdd op{{2, 6, 8, channels}, {2, height, width, channels}};
            for (const int gradients : {1, 2}) {
                naive::Problem problem{.operation = op};
                problem.inputs = {random_.normal(op.input), random_.normal(op.coarse)};
                expect_like_reference(problem, gradients);
            }
        }
    }
}

TEST_P(Pyramid, LinearWithReluAgreesWithReference) {
    for (const auto& [rows, columns, features] : std::vector<std::array<std::int64_t, 3>>{
             {4, 64, 10}, {3, 33, 21}, {1, 16, 1}, {40, 256, 100}}) {
        for (const int gradients : {1, 2}) {
            naive::Problem problem{.operation = ops::Linear{{rows, columns}, features, true}};
            problem.inputs = {random_.normal({rows, columns})};
            problem.parameters = {random_.normal({features, columns}), random_.normal({features})};
            expect_like_reference(problem, gradients);
        }
    }
}

TEST_P(Pyramid, FrozenNormAgreesWithReferenceAndTrainsNothing) {
    for (const std::int64_t channels : {3, 16, 24}) {
        for (const bool add : {false, true}) {
            for (const bool relu : {false, true}) {
                for (const int gradients : {1, 2}) {
                    ops::BatchNorm op{.input = {2, 5, 6, channels}, .add = add, .relu = relu};
                    op.frozen = true;
                    auto problem = random_batch_norm(GetParam().compute, op, 0, 0.5);
                    expect_like_reference(problem, gradients);
                }
            }
        }
    }
}

TEST_P(Pyramid, FrozenNormWritesOnlyTheGradientThatIsWanted) {
    ops::BatchNorm op{.input = {2, 5, 6, 16}, .add = true, .relu = true};
    op.frozen = true;
    const auto problem = random_batch_norm(GetParam().compute, op, 1, 0.5);
    const auto want = naive::solve(problem);
    for (const std::size_t wanted : {0, 1}) {
        const auto got = KernelRunner(GetParam(), problem).run({wanted == 0, wanted == 1});
        expect_close(got.input_gradients[wanted], want.input_gradients[wanted],
                     GetParam().tolerance.stored, "input gradient");
    }
}

TEST_P(Pyramid, GroupNormAgreesWithReference) {
    for (const auto& [channels, groups] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {16, 4}, {64, 32}, {64, 2}, {24, 3}, {21, 7}, {16, 16}}) {
        for (const bool relu : {false, true}) {
            for (const int gradients : {1, 2}) {
                const ops::GroupNorm op{{3, 5, 6, channels}, groups, 1e-5, relu};
                naive::Problem problem{.operation = op};
                problem.inputs = {random_.normal(op.input, 0.5)};
                problem.parameters = {fp32_.normal({channels}, 1, 0.5), fp32_.normal({channels})};
                expect_like_reference(problem, gradients);
            }
        }
    }
}

TEST_P(Pyramid, EverySecondPixelIsTaken) {
    for (const std::int64_t channels : {16, 24, 3}) {
        naive::Problem problem{
            .operation = ops::MaxPool{.input = {2, 7, 8, channels}, .kernel = 1, .stride = 2}};
        problem.inputs = {random_.normal({2, 7, 8, channels})};
        expect_like_reference(problem);
    }
}

TEST_P(Pyramid, NumbersThatAreNormalizedAlreadyAreOnlyStored) {
    using tensor::DType;
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
        for (const std::int64_t channels : {1, 3, 16, 20}) {
            naive::Random random(dtype, 10);
            naive::Problem problem{.operation =
                                       ops::InputNormalize{{2, 19, 17, channels}, {}, {}, dtype}};
            problem.inputs = {random.normal({2, 19, 17, channels}, 0, 3)};
            problem.inputs[0].values[0] = 0;
            problem.inputs[0].values[1] = dtype == DType::f16 ? 0x1p-24 : 0x1p-100;
            problem.inputs[0].values[2] = dtype == DType::f16 ? -65504 : -32768;
            expect_agreement(GetParam(), problem);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, Pyramid, testing::ValuesIn(device_rows()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace hpcai::device
