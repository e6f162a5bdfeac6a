// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/reference/naive_random.hpp>

#include "device/kernel_runner.hpp"

namespace hpcai::device {
namespace {

class Classifier : public testing::TestWithParam<DeviceRow> {
protected:
    naive::Random random_{GetParam().compute, 6};

    void expect_linear_like_reference(const ops::Linear& op) {
        naive::Problem problem{.operation = op};
        problem.inputs = {random_.normal(op.input)};
        problem.parameters = {random_.normal({op.features, op.input[1]}),
                              random_.normal({op.features})};
        problem.output_gradients = {random_.normal(output_shape(op))};
        expect_agreement(GetParam(), problem);
    }

    /// Returns a problem of the loss with `labels` repeated over the rows.
    naive::Problem loss_problem(const ops::SoftmaxCrossEntropy& op,
                                const std::vector<double>& labels) {
        naive::Problem problem{.operation = op};
        naive::Random logits(tensor::DType::f32, 7);
        problem.inputs = {logits.normal(op.input, 0, 3), naive::Tensor({op.input[0]})};
        for (std::int64_t n = 0; n < op.input[0]; ++n) {
            problem.inputs[1][n] = labels[static_cast<std::size_t>(n) % labels.size()];
        }
        problem.loss_scale = 0.125;
        return problem;
    }
};

TEST_P(Classifier, LinearAgreesWithReference) {
    expect_linear_like_reference({.input = {4, 64}, .features = 10});
    expect_linear_like_reference({.input = {3, 33}, .features = 21});
    expect_linear_like_reference({.input = {1, 16}, .features = 1});
    expect_linear_like_reference({.input = {8, 256}, .features = 100});
}

TEST_P(Classifier, SoftmaxCrossEntropyAgreesWithReference) {
    for (const double smoothing : {0.0, 0.1, 1.0}) {
        for (const std::int64_t classes : {2, 10, 37}) {
            expect_agreement(GetParam(), loss_problem({{5, classes}, smoothing}, {0, 1}));
        }
    }
}

TEST_P(Classifier, PaddingRowsHaveNoLossAndNoGradient) {
    const auto problem = loss_problem({{6, 11}, 0.1}, {-1, 10, 3});
    expect_agreement(GetParam(), problem);
    const auto got = KernelRunner(GetParam(), problem).run();
    for (const std::int64_t row : {0, 3}) {
        EXPECT_EQ(got.losses[row], 0);
        for (std::int64_t f = 0; f < 11; ++f) EXPECT_EQ(got.input_gradients[0][row * 11 + f], 0);
    }
}

TEST_P(Classifier, SoftmaxCrossEntropySurvivesExtremeLogits) {
    auto problem = loss_problem({{2, 3}, 0.1}, {0, 2});
    problem.inputs[0].values = {1e4, -1e4, 0, 90, 100, -100};
    expect_agreement(GetParam(), problem);
    const auto got = KernelRunner(GetParam(), problem).run();
    for (const double value : got.losses.values) EXPECT_TRUE(std::isfinite(value));
}

TEST_P(Classifier, SoftmaxOfAPaddingRowIsStillGiven) {
    auto problem = loss_problem({{2, 4}}, {-1});
    problem.training = false;
    const auto got = KernelRunner(GetParam(), problem).run();
    expect_close(got.output, naive::solve(problem).output, 1e-6, "softmax");
}

INSTANTIATE_TEST_SUITE_P(Devices, Classifier, testing::ValuesIn(device_rows()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace hpcai::device
