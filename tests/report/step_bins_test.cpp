// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

// This private header declares the data of the plots.
#include "report/chart.hpp"

namespace hpcai::report {
namespace {

std::vector<StepRecord> steps_of(const std::vector<double>& ends) {
    std::vector<StepRecord> steps;
    for (std::size_t index = 0; index < ends.size(); ++index) {
        StepRecord step;
        step.step = static_cast<std::int64_t>(index);
        step.samples = 10;
        step.end_seconds = ends[index];
        step.loss = static_cast<double>(index);
        steps.push_back(step);
    }
    return steps;
}

TEST(StepBins, MeanTheLossOfNeighbours) {
    std::vector<StepRecord> steps = steps_of({1, 2, 3, 4, 5});
    steps[1].loss = PhaseSeconds::kUnknown;
    const Series series = loss_by_step("x", steps, 2);
    ASSERT_EQ(series.points.size(), 2U);
    EXPECT_DOUBLE_EQ(series.points[0].x, 2);  // steps 1 and 3 of 5
    EXPECT_DOUBLE_EQ(series.points[0].y, 1);
    EXPECT_DOUBLE_EQ(series.points[1].x, 4.5);
    EXPECT_DOUBLE_EQ(series.points[1].y, 3.5);
}

TEST(StepBins, AreSmoothedOverNeighboursAndFewerAtTheEnds) {
    Series series{"x", {}};
    for (int index = 0; index < 50; ++index)
        series.points.push_back({1.0 * index, index % 2 + 0.0});
    series.points[25].y = 11;
    const Series smooth = smoothed({series}).front();
    ASSERT_EQ(smooth.points.size(), 50U);
    EXPECT_DOUBLE_EQ(smooth.points[0].y, 0);
    EXPECT_DOUBLE_EQ(smooth.points[1].y, 1.0 / 3) << "0, 1, 0";
    EXPECT_DOUBLE_EQ(smooth.points[10].y, 2.0 / 5) << "0, 1, 0, 1, 0";
    EXPECT_DOUBLE_EQ(smooth.points[25].y, 13.0 / 5) << "1, 0, 11, 0, 1";
    EXPECT_DOUBLE_EQ(smooth.points[25].x, 25);
}

TEST(StepBins, KeepTheNumberOfSamplesOverTime) {
    const Series series = speed_over_time("x", steps_of({1, 1.5, 4}), 4, 8);
    double samples = 0;
    for (const Point& point : series.points) samples += point.y * 0.5;
    EXPECT_NEAR(samples, 30, 1e-9);
    EXPECT_DOUBLE_EQ(series.points[0].y, 10);
    EXPECT_DOUBLE_EQ(series.points[2].y, 20) << "the second step took half as long";
    EXPECT_DOUBLE_EQ(series.points[7].y, 4);
}

TEST(StepBins, EndWithTheLastStep) {
    const Series series = speed_over_time("x", steps_of({1, 2}), 4, 4);
    EXPECT_DOUBLE_EQ(series.points[1].y, 10);
    EXPECT_TRUE(std::isnan(series.points[2].y));
}

TEST(StepBins, SpreadFromLeastToGreatest) {
    const Spread spread = spread_of(
        {{"a", {{0, 1}, {10, 1}}}, {"b", {{0, 3}, {10, 5}}}, {"c", {{0, 2}, {10, 2}}}}, 3);
    ASSERT_EQ(spread.median.points.size(), 3U);
    EXPECT_DOUBLE_EQ(spread.median.points[1].y, 2);
    EXPECT_DOUBLE_EQ(spread.band.low[1], 1);
    EXPECT_DOUBLE_EQ(spread.band.high[1], 4) << "between 3 and 5";
}

TEST(StepBins, SumPhasesAndLeaveUnknownOnesUnknown) {
    std::vector<StepRecord> steps = steps_of({1, 2, 3});
    steps[0].phases.forward = 0.5;
    steps[2].phases.forward = 0.25;
    const std::vector<double> totals = phase_totals(steps);
    EXPECT_TRUE(std::isnan(totals[0]));
    EXPECT_DOUBLE_EQ(totals[1], 0.75);
    const PhaseBins bins = phase_bins(steps, 1);
    EXPECT_DOUBLE_EQ(bins.seconds[1][0], 0.25);
    EXPECT_DOUBLE_EQ(bins.step[0], 2);
}

TEST(Ticks, OfCountsAreWholeNumbers) {
    EXPECT_EQ(ticks(1, 3, 6, 1), (std::vector<double>{1, 2, 3}));
    EXPECT_EQ(ticks(1, 1, 6, 1), (std::vector<double>{1, 2}));
    EXPECT_EQ(ticks(0, 60, 6, 1), (std::vector<double>{0, 10, 20, 30, 40, 50, 60}));
}

TEST(Ticks, AreRoundAndEnclose) {
    EXPECT_EQ(ticks(0, 10, 4), (std::vector<double>{0, 5, 10}));
    EXPECT_EQ(ticks(0, 4, 4), (std::vector<double>{0, 1, 2, 3, 4}));
    for (const auto& [low, high] :
         std::vector<std::pair<double, double>>{{0, 0},
                                                {-3, -3},
                                                {1e-30, 2e-30},
                                                {1e20, std::nextafter(1e20, 1e21)},
                                                {-1e299, 1e299}}) {
        const std::vector<double> found = ticks(low, high, 4);
        ASSERT_GE(found.size(), 2U) << low;
        EXPECT_LE(found.front(), low);
        EXPECT_GE(found.back(), high);
        EXPECT_LT(found.size(), 12U);
    }
}

}  // namespace
}  // namespace hpcai::report
