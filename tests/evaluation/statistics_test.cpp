// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/base/philox.hpp>
#include <hpcai/evaluation/statistics.hpp>

namespace hpcai::evaluation {
namespace {

TEST(McNemar, HasTheProbabilityOfTosses) {
    EXPECT_DOUBLE_EQ(mcnemar_p(0, 0), 1);
    EXPECT_DOUBLE_EQ(mcnemar_p(5, 5), 1);
    EXPECT_NEAR(mcnemar_p(0, 5), 2.0 / 32, 1e-12);
    EXPECT_NEAR(mcnemar_p(1, 9), 2 * 11.0 / 1024, 1e-12);
    EXPECT_NEAR(mcnemar_p(9, 1), mcnemar_p(1, 9), 1e-15);
    EXPECT_LT(mcnemar_p(4000, 5000), 1e-9);
}

/// Uniform between 1 and 2, from its own stream.
std::vector<double> noisy_seconds(std::size_t steps, std::uint32_t number) {
    CounterStream stream(1, RandomPurpose::test, number);
    std::vector<double> seconds;
    while (seconds.size() < steps) seconds.push_back(1 + stream.below(1000) / 1000.0);
    return seconds;
}

TEST(TimeRatio, IsThatOfSteadySteps) {
    const StepSeconds first{std::vector<double>(20, 2.0), std::vector<double>(20, 1.0)};
    const StepSeconds second{std::vector<double>(20, 3.0)};
    const auto ratio = time_ratio_95(first, second);
    ASSERT_TRUE(ratio);
    EXPECT_DOUBLE_EQ(ratio->low, 1.5) << "the slowest group counts";
    EXPECT_DOUBLE_EQ(ratio->high, 1.5);
}

TEST(TimeRatio, ContainsOneWhereStepsDifferByChance) {
    const auto ratio = time_ratio_95({noisy_seconds(400, 0)}, {noisy_seconds(400, 1)});
    ASSERT_TRUE(ratio);
    EXPECT_LT(ratio->low, 1);
    EXPECT_GT(ratio->high, 1);
    EXPECT_LT(ratio->high - ratio->low, 0.15);
}

TEST(TimeRatio, DistinguishesATenthDespiteNoise) {
    std::vector<double> slower = noisy_seconds(400, 1);
    for (double& seconds : slower) seconds *= 1.1;
    const auto ratio = time_ratio_95({noisy_seconds(400, 0)}, {slower});
    ASSERT_TRUE(ratio);
    EXPECT_GT(ratio->low, 1.02);
}

/// The ratio is 0.893. Blocks that could not wrap around would rarely contain the first steps.
TEST(TimeRatio, DrawsTheFirstStepAsOftenAsOthers) {
    std::vector<double> first(10'000, 0.1);
    first.front() = 120;
    const auto ratio = time_ratio_95({first}, {std::vector<double>(10'000, 0.1)});
    ASSERT_TRUE(ratio);
    EXPECT_LT(ratio->low, 0.893);
    EXPECT_GT(ratio->high, 0.893);
}

TEST(TimeRatio, IsUnknownWhereItsDrawsMissTheObserved) {
    const StepSeconds many(64, noisy_seconds(20, 0));
    double sum = 0;
    for (const double seconds : many.front()) sum += seconds;
    EXPECT_FALSE(time_ratio_95(many, {std::vector<double>(20, sum / 20)}))
        << "the slowest of many draws takes longer than any group did";
}

TEST(TimeRatio, IsUnknownWithoutTwoStepsAGroup) {
    EXPECT_FALSE(time_ratio_95({{1.0}}, {{1.0, 1.0}}));
    EXPECT_FALSE(time_ratio_95({}, {{1.0, 1.0}}));
    EXPECT_FALSE(time_ratio_95({{0.0, 0.0}}, {{1.0, 1.0}}));
}

TEST(PairedInterval, DrawsAsManyImagesAsThereAre) {
    const auto interval = image_interval_95(50, [](auto times) -> std::optional<double> {
        double sum = 0;
        for (const std::uint32_t count : times) sum += count;
        EXPECT_EQ(sum, 50);
        return times[0];
    });
    ASSERT_TRUE(interval);
    EXPECT_EQ(interval->low, 0);
    EXPECT_GE(interval->high, 2);
    EXPECT_FALSE(image_interval_95(5, [](auto) { return std::optional<double>(); }));
}

}  // namespace
}  // namespace hpcai::evaluation
