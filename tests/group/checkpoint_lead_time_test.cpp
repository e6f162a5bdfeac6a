// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "group/group_checkpoints.hpp"

namespace hpcai::group {
namespace {

constexpr double kHour = 3600;

TEST(CheckpointLeadTime, IncludesTwoPollsTheCopyAndTheWriteInProgress) {
    EXPECT_DOUBLE_EQ(checkpoint_lead_seconds({0.5, 3, 10, 0}, kHour), 0.5 + 6 + 20);
    EXPECT_DOUBLE_EQ(checkpoint_lead_seconds({0, 3, 1, std::size_t{1} << 40}, kHour), 6 + 2)
        << "the time of a write counts, not the bytes";
}

TEST(CheckpointLeadTime, EstimatesTheFirstWriteByItsBytes) {
    EXPECT_DOUBLE_EQ(checkpoint_lead_seconds({0, 0, 1, 0}, kHour), 2 + 2);
    EXPECT_DOUBLE_EQ(checkpoint_lead_seconds({0, 0, 1, std::size_t{320} << 20}, kHour), 2 + 10 + 2);
}

TEST(CheckpointLeadTime, LeavesHalfOfAShortLimitToTheTraining) {
    EXPECT_DOUBLE_EQ(checkpoint_lead_seconds({0, 0, 1, std::size_t{320} << 20}, 10), 5);
    EXPECT_DOUBLE_EQ(checkpoint_lead_seconds({0, 0, 30, 0}, 0.001), 0.0005);
}

TEST(UninterruptiblePhases, AreAsLongAsTheLongestAfterTheStepsThatTheyFollow) {
    UninterruptiblePhases phases;
    EXPECT_FALSE(phases.is_due(6)) << "there are none";
    phases.set_interval(3);
    EXPECT_TRUE(phases.is_due(3));
    EXPECT_EQ(phases.seconds_after(3), 0) << "the first is unknown";
    phases.add(40);
    phases.add(25);
    EXPECT_EQ(phases.seconds_after(6), 40);
    EXPECT_EQ(phases.seconds_after(7), 0);
    EXPECT_FALSE(phases.is_due(7));
}

}  // namespace
}  // namespace hpcai::group
