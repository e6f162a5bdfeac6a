// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/reference/naive_random.hpp>

#include "device/kernel_runner.hpp"

namespace hpcai::device {
namespace {

class Elementwise : public testing::TestWithParam<DeviceRow> {
protected:
    naive::Random random_{GetParam().compute, 5};

    naive::Problem problem_of(const ops::Operation& operation, const tensor::Shape& input,
                              int inputs, int output_gradients) {
        naive::Problem problem{.operation = operation};
        for (int i = 0; i < inputs; ++i) problem.inputs.push_back(random_.normal(input));
        for (int i = 0; i < output_gradients; ++i) {
            problem.output_gradients.push_back(random_.normal(output_shape(operation)));
        }
        return problem;
    }
};

// Sizes below, at and above the number that a thread processes at once, with and without a rest.
const std::vector<tensor::Shape> kShapes{{1, 1, 1, 1},  {1, 1, 5, 3},  {2, 3, 4, 16},
                                         {2, 8, 8, 24}, {3, 4, 4, 21}, {1, 16, 33, 16},
                                         {2, 65, 8, 16}};

TEST_P(Elementwise, ReluAgreesWithReference) {
    for (const auto& shape : kShapes) {
        for (const int gradients : {1, 2}) {
            expect_agreement(GetParam(), problem_of(ops::Relu{shape}, shape, 1, gradients));
        }
    }
}

TEST_P(Elementwise, AddAgreesWithReference) {
    for (const auto& shape : kShapes) {
        for (const int gradients : {1, 2}) {
            expect_agreement(GetParam(), problem_of(ops::Add{shape}, shape, 2, gradients));
        }
    }
}

TEST_P(Elementwise, AddWritesOnlyTheGradientThatIsWanted) {
    const tensor::Shape shape{2, 3, 4, 16};
    const auto problem = problem_of(ops::Add{shape}, shape, 2, 2);
    const auto got = KernelRunner(GetParam(), problem).run({false, true});
    expect_close(got.input_gradients[1], naive::solve(problem).input_gradients[1],
                 GetParam().tolerance.stored, "input gradient");
}

TEST_P(Elementwise, NormalizeAgreesWithReference) {
    for (const std::int64_t channels : {1, 3, 4, 8, 16, 20, 32}) {
        for (const std::int64_t size : {3, 19}) {
            ops::InputNormalize op{{2, size, size, channels}, {}, {}};
            for (std::int64_t c = 0; c < channels; ++c) {
                op.mean.push_back(0.3 + 0.02 * static_cast<double>(c));
                op.standard_deviation.push_back(0.2 + 0.01 * static_cast<double>(c));
            }
            naive::Problem problem{.operation = op};
            problem.inputs = {random_.below(op.input, 256)};
            expect_agreement(GetParam(), problem);
        }
    }
}

TEST_P(Elementwise, NormalizeMapsTheEndsOfTheScale) {
    naive::Problem problem{.operation = ops::InputNormalize{{1, 1, 2, 1}, {0.5}, {0.25}}};
    problem.inputs = {naive::Tensor({1, 1, 2, 1})};
    problem.inputs[0].values = {0, 255};
    const auto got = KernelRunner(GetParam(), problem).run();
    EXPECT_EQ(got.output.values, (std::vector<double>{-2, 2}));
}

TEST_P(Elementwise, NormalizeRejectsMeansForAnotherNumberOfChannels) {
    const auto device = GetParam().make();
    EXPECT_THROW(device->build(ops::InputNormalize{{1, 2, 2, 4}, {0, 0, 0}, {1, 1, 1}},
                               {.compute = GetParam().compute}),
                 Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, Elementwise, testing::ValuesIn(device_rows()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace hpcai::device
