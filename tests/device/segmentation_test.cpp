// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "device/detection_problems.hpp"
#include "device/kernel_runner.hpp"

/// The segmentation loss compared with a naive one in double.
namespace hpcai::device {
namespace {

class Segmentation : public testing::TestWithParam<DeviceRow> {
protected:
    /// Returns targets of images of 64 x 96 pixels; the last image has no boxes.
    naive::Problem problem_of(std::int64_t images, std::int64_t stride, std::int64_t classes) {
        const tensor::Shape cells{images, 64 / stride, 96 / stride, classes};
        naive::Problem problem;
        problem.inputs = {random_.normal(cells, 0, 3), problems_.labelled(images, 6, classes)};
        problem.operation = ops::CellCrossEntropy{.input = cells,
                                                  .boxes = problem.inputs[1].shape,
                                                  .stride = stride,
                                                  .background_weight = 0.25};
        problem.loss_scale = 0.125;
        return problem;
    }

    naive::Random random_{GetParam().compute, 9};
    DetectionProblems problems_{GetParam().compute};
};

TEST_P(Segmentation, CellCrossEntropyAgreesWithReference) {
    for (const std::int64_t stride : {8, 16}) {
        for (const std::int64_t classes : {2, 5, 16, 21}) {
            expect_agreement(GetParam(), problem_of(3, stride, classes));
        }
    }
}

TEST_P(Segmentation, CellCrossEntropySurvivesExtremeLogits) {
    auto problem = problem_of(2, 16, 5);
    for (double& value : problem.inputs[0].values) value = value > 0 ? 20000 : -20000;
    const auto got = KernelRunner(GetParam(), problem).run();
    for (const double value : got.losses.values) EXPECT_TRUE(std::isfinite(value));
    for (const double value : got.output.values) EXPECT_TRUE(std::isfinite(value));
}

TEST_P(Segmentation, CellsHaveASoftmaxWithoutTraining) {
    auto problem = problem_of(2, 8, 5);
    problem.training = false;
    const auto got = KernelRunner(GetParam(), problem).run();
    expect_close(got.output, naive::solve(problem).output, 1e-6, "softmax");
}

TEST_P(Segmentation, EveryRunGivesTheSame) {
    const auto problem = problem_of(2, 8, 5);
    const auto first = KernelRunner(GetParam(), problem).run();
    const auto second = KernelRunner(GetParam(), problem).run();
    EXPECT_EQ(first.losses.values, second.losses.values);
    EXPECT_EQ(first.input_gradients[0].values, second.input_gradients[0].values);
}

INSTANTIATE_TEST_SUITE_P(Devices, Segmentation, testing::ValuesIn(device_rows()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace hpcai::device
