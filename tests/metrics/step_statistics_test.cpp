// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/metrics/step_statistics.hpp>

namespace hpcai::metrics {
namespace {

const UnknownReasons kReasons{"no phases", "no host", "no sums"};

RankRecord rank_with(int rank, double forward, double backward = 0, double input_wait = 0) {
    RankRecord record;
    record.group_rank = rank;
    record.world_rank = 10 + rank;
    record.host = "node" + std::to_string(rank);
    record.median_step_seconds = 1 + rank;
    record.mean = {input_wait, forward, backward, 0, 0, 0};
    return record;
}

TEST(StepStatistics, OfARankAreMedianAndNearestRank) {
    std::vector<double> seconds;
    for (int i = 200; i > 0; --i) seconds.push_back(i);
    const RankRecord record = summarize(std::vector<StepRecord>(200), seconds);
    EXPECT_EQ(record.steps, 200);
    EXPECT_EQ(record.median_step_seconds, 100.5);
    EXPECT_EQ(record.p99_step_seconds, 198);
    EXPECT_EQ(record.longest_step_seconds, 200);
    EXPECT_EQ(summarize(std::vector<StepRecord>(1), std::vector<double>{3}).p99_step_seconds, 3);
}

TEST(StepStatistics, OmitStepsThatWereNotMeasured) {
    std::vector<StepRecord> steps(4);
    steps[1].phases.forward = 1;
    steps[3].phases.forward = 4;
    const RankRecord record = summarize(steps, std::vector<double>{});
    EXPECT_EQ(record.mean.forward, 2.5);
    EXPECT_TRUE(std::isnan(record.mean.backward));
    EXPECT_TRUE(std::isnan(record.median_step_seconds));
}

TEST(TimeBreakdown, IsTheSpreadOverTheRanks) {
    const std::vector<RankRecord> ranks{rank_with(0, 1), rank_with(1, 3), rank_with(2, 2)};
    const TimeBreakdownRecord time = break_down(0, ranks, std::vector{0, 0, 0}, kReasons);
    EXPECT_EQ(time.forward.minimum.value, 1);
    EXPECT_EQ(time.forward.median.value, 2);
    EXPECT_EQ(time.forward.p99.value, 3);
    EXPECT_EQ(time.forward.maximum.value, 3);
    EXPECT_EQ(time.step_seconds.value, 2);
    EXPECT_EQ(time.overlapped_communication.median, (Quantity{std::nullopt, "no sums"}));
}

TEST(TimeBreakdown, ReportsWhyANumberOfOneRankIsMissing) {
    std::vector<RankRecord> ranks{rank_with(0, 1), rank_with(1, 3)};
    ranks[1].mean.forward = ranks[0].mean.other = PhaseSeconds::kUnknown;
    const TimeBreakdownRecord time = break_down(0, ranks, std::vector{0, 0}, kReasons);
    EXPECT_EQ(time.forward.maximum, (Quantity{std::nullopt, "no phases"}));
    EXPECT_EQ(time.other.minimum, (Quantity{std::nullopt, "no host"}));
    EXPECT_TRUE(time.stragglers.empty());
}

TEST(TimeBreakdown, NamesTheStragglerAndItsPhase) {
    const std::vector<RankRecord> ranks{rank_with(0, 1, 2, 0.1), rank_with(1, 1.1, 2.9, 0.1),
                                        rank_with(2, 1, 2, 0.1)};
    const TimeBreakdownRecord time = break_down(4, ranks, std::vector{0, 0, 0}, kReasons);
    ASSERT_EQ(time.stragglers.size(), 1U);
    const StragglerRecord expected{4, 1, 11, "node1", "backward", time.stragglers[0].ratio};
    EXPECT_EQ(time.stragglers[0], expected);
    EXPECT_NEAR(time.stragglers[0].ratio, 4.1 / 3.1, 1e-12);
}

TEST(TimeBreakdown, CountsTheWaitForInputAsARanksOwn) {
    const std::vector<RankRecord> ranks{rank_with(0, 1), rank_with(1, 1), rank_with(2, 1, 0, 0.5)};
    const auto stragglers = break_down(0, ranks, std::vector{0, 0, 0}, kReasons).stragglers;
    ASSERT_EQ(stragglers.size(), 1U);
    EXPECT_EQ(stragglers[0].phase, "input_wait");
    EXPECT_EQ(stragglers[0].ratio, 1.5);
}

// The input wait is unknown on GPUs.
TEST(TimeBreakdown, FindsAStragglerByThePhasesThatAllRanksKnow) {
    std::vector<RankRecord> ranks{rank_with(0, 1, 2), rank_with(1, 1, 3), rank_with(2, 1, 2)};
    for (RankRecord& rank : ranks) rank.mean.input_wait = PhaseSeconds::kUnknown;
    const auto stragglers = break_down(0, ranks, std::vector{0, 0, 0}, kReasons).stragglers;
    ASSERT_EQ(stragglers.size(), 1U);
    EXPECT_EQ(stragglers[0].phase, "backward");
    EXPECT_EQ(stragglers[0].ratio, 4. / 3);
}

TEST(TimeBreakdown, FindsNoStragglerIfMostRanksDidNoWork) {
    const std::vector<RankRecord> ranks{rank_with(0, 0), rank_with(1, 0), rank_with(2, 1)};
    EXPECT_TRUE(break_down(0, ranks, std::vector{0, 0, 0}, kReasons).stragglers.empty());
}

TEST(TimeBreakdown, FindsNoStragglerAmongRanksThatDifferByAFifth) {
    const std::vector<RankRecord> ranks{rank_with(0, 1), rank_with(1, 1), rank_with(2, 1.2)};
    EXPECT_TRUE(break_down(0, ranks, std::vector{0, 0, 0}, kReasons).stragglers.empty());
}

// A stage with more layers than the others is not a straggler.
TEST(TimeBreakdown, ComparesTheRanksOfAStageOnly) {
    const std::vector<RankRecord> ranks{rank_with(0, 1), rank_with(1, 5), rank_with(2, 1),
                                        rank_with(3, 5)};
    EXPECT_TRUE(break_down(0, ranks, std::vector{0, 1, 0, 1}, kReasons).stragglers.empty());
    EXPECT_EQ(break_down(0, ranks, std::vector{0, 0, 0, 0}, kReasons).stragglers.size(), 2U);
}

TEST(TimeBreakdown, OfARunIsTheLargestOfItsGroups) {
    const auto of = [](int group, double forward) {
        const std::vector<RankRecord> ranks{rank_with(0, 1), rank_with(1, forward)};
        return break_down(group, ranks, std::vector{0, 0}, kReasons);
    };
    const std::vector<TimeBreakdownRecord> groups{of(0, 2), of(1, 4), of(2, 1)};
    const TimeBreakdownRecord run = maximum_over_groups(groups, "nobody");
    EXPECT_EQ(run.forward.maximum.value, 4);
    EXPECT_EQ(run.forward.median.value, 2.5);
    EXPECT_EQ(run.forward.minimum.value, 1);
    EXPECT_EQ(run.overlapped_communication.p99, (Quantity{std::nullopt, "no sums"}));
    ASSERT_EQ(run.stragglers.size(), 2U);
    EXPECT_EQ(run.stragglers[0].group, 0);
    EXPECT_EQ(run.stragglers[1].group, 1);
    EXPECT_EQ(maximum_over_groups({}, "nobody").forward.median, (Quantity{std::nullopt, "nobody"}));
}

}  // namespace
}  // namespace hpcai::metrics
