// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>

#include <hpcai/verification/derive.hpp>

#include "report/example_record.hpp"

namespace hpcai::verification {
namespace {

config::Config evaluated_each(int epochs) {
    config::Config config;
    config.run.evaluate_epochs = epochs;
    config.workload.epochs = 5;
    return config;
}

/// The first group's model has 0.7 after 16 s, the second's 0.725 after 12 s; both have 0.5 after
/// half of that.
RunRecord record_with_target(double target) {
    RunRecord record = report::example_record();
    record.quality.target = target;
    return record;
}

TEST(TimeToQuality, IsThatOfTheLastModelToReachTheTarget) {
    RunRecord record = record_with_target(0.6);
    derive_time_to_quality(evaluated_each(1), record);
    EXPECT_EQ(record.time.time_to_quality_seconds.value, 16);
    record = record_with_target(0.5);
    derive_time_to_quality(evaluated_each(1), record);
    EXPECT_EQ(record.time.time_to_quality_seconds.value, 8) << "when it was reached first";
}

TEST(TimeToQuality, IsUnknownIfAModelDoesNotReachTheTarget) {
    RunRecord record = record_with_target(0.71);
    derive_time_to_quality(evaluated_each(1), record);
    EXPECT_EQ(record.time.time_to_quality_seconds,
              no_value("the model of group 0 did not reach the target"));
    record.work.groups[0].failure = "it did not finish";
    derive_time_to_quality(evaluated_each(1), record);
    EXPECT_EQ(record.time.time_to_quality_seconds.value, 12) << "of the groups that finished";
    derive_time_to_quality(evaluated_each(0), record);
    EXPECT_EQ(record.time.time_to_quality_seconds, no_value("run.evaluate_epochs is 0"));
}

TEST(SummarySettings, HaveTheWidthOfPicturesThatAreNotSquare) {
    config::Config config;
    const auto rows = [&] {
        const std::vector<ParameterRecord> settings = summary_settings(config, {}, "fp32");
        return std::ranges::count(settings, std::string("workload.image_width"),
                                  &ParameterRecord::key);
    };
    config.workload.image_width = config.workload.image_size;
    EXPECT_EQ(rows(), 0);
    config.workload.image_width = 2 * config.workload.image_size;
    EXPECT_EQ(rows(), 1);
}

TEST(LearningCurve, FollowsFromStepsExceptForQualitiesBeforeTheLastEpoch) {
    std::vector<StepRecord> steps;
    for (int step = 0; step < 10; ++step) {
        steps.push_back({.step = step, .epoch = step / 2, .samples = 1});
        steps.back().end_seconds = step + 1;
    }
    GroupResult result;
    result.quality = {0.75, ""};
    result.record.training_seconds = {10, ""};
    result.record.quality_by_epoch = {{1, 99, 0.25}, {4, 99, 0.5}, {5, 99, 0.9}};
    derive_learning_curve(evaluated_each(2), steps, result);
    const std::vector<EpochQualityRecord> expected{{2, 4, 0.25}, {4, 8, 0.5}, {5, 10, 0.75}};
    EXPECT_EQ(result.record.quality_by_epoch, expected);
    derive_learning_curve(evaluated_each(0), steps, result);
    EXPECT_TRUE(result.record.quality_by_epoch.empty());
}

}  // namespace
}  // namespace hpcai::verification
