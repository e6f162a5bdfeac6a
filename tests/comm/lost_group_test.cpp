// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "leaders.hpp"

namespace hpcai::comm {
namespace {

TEST(MembershipAgreementWithLoss, NoLeaderWaitsForALostGroupAndTheWriterKnowsWhy) {
    for (int victim = 0; victim < 3; ++victim) {
        Leaders leaders(3);
        for (int group = 0; group < 3; ++group) {
            if (group != victim) leaders.arrive_at(group, 40 + group);
        }
        leaders.lose_at(victim, 30);
        EXPECT_LE(leaders.run(), 50) << "group " << victim;
        for (int group = 0; group < 3; ++group) {
            if (group == victim) continue;
            const Membership& decision = leaders.decision(group);
            EXPECT_EQ(decision.voters().size(), 2u);
            EXPECT_EQ(decision.status(victim).state, GroupState::lost);
            EXPECT_EQ(decision.status(victim).exit_code, ExitCode::watchdog);
            EXPECT_FALSE(decision.has_absent_group());
            EXPECT_TRUE(decision.has_lost_rank());
            if (group != decision.writer()) continue;
            EXPECT_EQ(decision.status(victim).reason_text(), "rank 0 has died");
        }
    }
}

TEST(MembershipAgreementWithLoss, OfLostAndFailedGroupsAFailedOneWrites) {
    Leaders leaders(3);
    leaders.lose_at(0, 5);
    leaders.arrive_at(1, 20, GroupState::failed);
    leaders.lose_at(2, 10);
    EXPECT_LE(leaders.run(), 30);
    EXPECT_TRUE(leaders.decision(1).agreed);
    EXPECT_EQ(leaders.decision(1).writer(), 1);
    EXPECT_TRUE(leaders.decision(1).voters().empty());
}

TEST(MembershipAgreementWithLoss, ALeaderThatWasReportedLostAndReportsItsFailureHasFailed) {
    Leaders leaders(2);
    leaders.arrive_at(0, 100);
    leaders.arrive_at(1, 31, GroupState::failed);
    leaders.lose_at(1, 30);
    leaders.die_at(1, 3000);
    leaders.run();
    EXPECT_EQ(leaders.decision(0).status(1).state, GroupState::failed);
    EXPECT_TRUE(leaders.decision(1).agreed);
}

/// If a leader is lost and another rank of its group reports it, before or long after the others
/// arrive, two leaders never have different lists that contain both.
TEST(MembershipAgreementWithLoss, NoTwoLeadersVoteWithDifferentListsWhenOneIsLost) {
    expect_one_list_where_one_goes(&Leaders::lose_at);
}

}  // namespace
}  // namespace hpcai::comm
