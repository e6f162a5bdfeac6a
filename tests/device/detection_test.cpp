// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "device/detection_problems.hpp"
#include "device/kernel_runner.hpp"

/// The operations of Faster R-CNN compared with naive ones in double.
namespace hpcai::device {
namespace {

naive::Tensor column(const naive::Tensor& rows, std::int64_t which) {
    naive::Tensor one({rows.shape[0], rows.shape[1]});
    for (std::int64_t row = 0; row < one.shape.elements(); ++row) {
        one[row] = rows[row * rows.shape[2] + which];
    }
    return one;
}

class Detection : public testing::TestWithParam<DeviceRow> {
protected:
    DetectionProblems problems_{GetParam().compute};

    /// Compares rows; the error of each column is relative to its largest number.
    naive::Tensor expect_rows_like_reference(const naive::Problem& problem) {
        const naive::Solution got = KernelRunner(GetParam(), problem).run();
        const naive::Solution want = naive::solve(problem);
        for (std::int64_t i = 0; i < want.output.shape[2]; ++i) {
            expect_close(column(got.output, i), column(want.output, i), 2e-6,
                         std::string(name_of(problem.operation)) + ", column " + std::to_string(i));
        }
        return got.output;
    }
    void expect_like_reference(const naive::Problem& problem) {
        expect_agreement(GetParam(), problem, {GetParam().tolerance.stored, 2e-6});
    }
    /// A coordinate up to 200 pixels from the origin has an fp32 error of up to 2^-17 pixels.
    Tolerance of_places() const { return {std::max(GetParam().tolerance.stored, 2e-5), 2e-6}; }
    /// Expects that no result is NaN or infinite.
    void expect_numbers(const naive::Problem& problem) {
        for (const double value : KernelRunner(GetParam(), problem).run().output.values) {
            ASSERT_TRUE(std::isfinite(value)) << name_of(problem.operation);
        }
    }
    /// Writes NaN and infinities to an input.
    static void spoil(naive::Tensor& tensor) {
        for (std::size_t i = 0; i < tensor.values.size(); i += 5) {
            tensor.values[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? HUGE_VAL : -HUGE_VAL;
        }
    }
};

TEST_P(Detection, AnchorTargetsAgreeWithReference) {
    for (const std::int64_t samples : {8, 64, 4000}) {
        for (int repeat = 0; repeat < 4; ++repeat) {
            expect_rows_like_reference(problems_.anchor_targets(3, samples));
        }
    }
}

TEST_P(Detection, AnchorTargetsOfAnImageWithoutBoxesAreNegative) {
    auto problem = problems_.anchor_targets(1, 32);
    for (double& value : problem.inputs[0].values) value = -1;
    const auto got = expect_rows_like_reference(problem);
    for (std::int64_t row = 0; row < 32; ++row) {
        EXPECT_GE(got[row * 6], 0);
        EXPECT_EQ(got[row * 6 + 1], 0);
    }
}

TEST_P(Detection, AnchorTargetsTakeABoxWithoutAreaForNone) {
    auto problem = problems_.anchor_targets(1, 4000);
    problem.inputs[0] = naive::Tensor({1, 6, 5});
    for (std::int64_t g = 0; g < 3; ++g) problem.inputs[0][g * 5 + 4] = 1;
    problem.inputs[0][5 + 2] = NAN;
    problem.inputs[0][10 + 2] = 10;
    const auto got = expect_rows_like_reference(problem);
    for (const double value : column(got, 1).values) EXPECT_EQ(value, 0);
}

TEST_P(Detection, RpnLossAgreesWithReference) {
    for (const std::int64_t samples : {8, 64})
        expect_like_reference(problems_.rpn_loss(3, samples));
}

TEST_P(Detection, RpnLossWithoutSamplesIsZero) {
    auto problem = problems_.rpn_loss(2, 8);
    for (double& value : problem.inputs.back().values) value = -1;
    const auto got = KernelRunner(GetParam(), problem).run();
    for (const double loss : got.output.values) EXPECT_EQ(loss, 0);
    for (const double value : got.input_gradients[0].values) EXPECT_EQ(value, 0);
}

TEST_P(Detection, RpnLossSurvivesExtremeLogits) {
    auto problem = problems_.rpn_loss(2, 64);
    for (std::size_t level = 0; level < 5; ++level) {
        for (double& value : problem.inputs[level].values) value = value > 0 ? 20000 : -20000;
    }
    expect_numbers(problem);
}

TEST_P(Detection, ProposalsAgreeWithReference) {
    for (const std::int64_t per_level : {7, 100, 2000}) {
        for (const std::int64_t limit : {5, 60, 3000}) {
            expect_rows_like_reference(problems_.proposals_of(2, per_level, limit));
        }
    }
}

TEST_P(Detection, ProposalsOfEqualLogitsComeInTheOrderOfTheAnchors) {
    auto problem = problems_.proposals_of(1, 50, 200);
    for (std::size_t level = 0; level < 5; ++level) {
        for (double& value : problem.inputs[level].values) value = std::copysign(0.0, value);
    }
    std::get<ops::Proposals>(problem.operation).nms_iou = 1;
    expect_rows_like_reference(problem);
}

TEST_P(Detection, ProposalsOmitWhatIsNoNumber) {
    auto problem = problems_.proposals_of(2, 300, 400);
    for (naive::Tensor& input : problem.inputs) spoil(input);
    expect_numbers(problem);
    for (naive::Tensor& input : problem.inputs) {
        for (double& value : input.values) value = NAN;
    }
    for (const double score : column(KernelRunner(GetParam(), problem).run().output, 4).values) {
        EXPECT_EQ(score, -1);
    }
}

TEST_P(Detection, RoiTargetsAgreeWithReference) {
    for (const std::int64_t samples : {4, 20, 200}) {
        for (int repeat = 0; repeat < 4; ++repeat) {
            expect_rows_like_reference(problems_.roi_targets(3, samples));
        }
    }
}

TEST_P(Detection, RoiTargetsOfNothingAreUnused) {
    auto problem = problems_.roi_targets(2, 20);
    for (double& value : problem.inputs[0].values) value = -1;
    for (double& value : problem.inputs[1].values) value = -1;
    for (const double label : column(expect_rows_like_reference(problem), 4).values) {
        EXPECT_EQ(label, -1);
    }
}

TEST_P(Detection, RoiAlignAgreesWithReference) {
    for (const std::int64_t channels : {3, 16, 24}) {
        expect_agreement(GetParam(), problems_.roi_align(2, 23, channels), of_places());
    }
    auto problem = problems_.roi_align(1, 9, 16);
    auto& op = std::get<ops::RoiAlign>(problem.operation);
    op.pooled = 3;
    op.sampling_ratio = 1;
    problem.output_gradients = {naive::Tensor(output_shape(problem.operation), 0.5)};
    expect_agreement(GetParam(), problem, of_places());
}

TEST_P(Detection, RoiAlignWritesOnlyTheGradientsThatAreWanted) {
    const auto problem = problems_.roi_align(1, 20, 16);
    const auto got = KernelRunner(GetParam(), problem).run({false, true, false, true, false});
    const auto want = naive::solve(problem);
    for (const std::size_t level : {1, 3}) {
        expect_close(got.input_gradients[level], want.input_gradients[level], of_places().stored,
                     "gradient");
    }
}

TEST_P(Detection, RoiAlignOfRegionsThatAreNoNumbersIsOfNumbers) {
    auto problem = problems_.roi_align(1, 20, 16);
    for (std::int64_t row = 0; row < 17; ++row) {
        problem.inputs.back()[row * 5 + row % 4] = row % 3 == 0   ? NAN
                                                   : row % 3 == 1 ? HUGE_VAL
                                                                  : -1e30;
    }
    expect_numbers(problem);
}

TEST_P(Detection, RoiLossAgreesWithReference) {
    for (const std::int64_t samples : {4, 40})
        expect_like_reference(problems_.roi_loss(3, samples));
}

TEST_P(Detection, RoiLossWithoutRegionsIsZero) {
    auto problem = problems_.roi_loss(2, 8);
    for (double& value : problem.inputs[2].values) value = -1;
    const auto got = KernelRunner(GetParam(), problem).run();
    for (const double loss : got.output.values) EXPECT_EQ(loss, 0);
    for (const auto& gradient : {got.input_gradients[0], got.input_gradients[1]}) {
        for (const double value : gradient.values) EXPECT_EQ(value, 0);
    }
}

TEST_P(Detection, DetectionsAgreeWithReference) {
    for (const std::int64_t classes : {2, 5, 21}) {
        for (const std::int64_t limit : {3, 30, 500}) {
            expect_rows_like_reference(problems_.detections(3, 40, classes, limit));
        }
    }
}

TEST_P(Detection, DetectionsOmitWhatIsNoNumber) {
    auto problem = problems_.detections(2, 40, 5, 100);
    spoil(problem.inputs[0]);
    spoil(problem.inputs[1]);
    expect_numbers(problem);
}

TEST_P(Detection, EveryRunGivesTheSame) {
    for (const auto& problem : {problems_.anchor_targets(2, 64), problems_.proposals_of(2, 100, 60),
                                problems_.roi_targets(2, 20), problems_.detections(2, 40, 5, 30)}) {
        EXPECT_EQ(KernelRunner(GetParam(), problem).run().output.values,
                  KernelRunner(GetParam(), problem).run().output.values);
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, Detection, testing::ValuesIn(device_rows()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace hpcai::device
