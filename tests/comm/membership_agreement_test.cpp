// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>

#include <gtest/gtest.h>

#include <hpcai/comm/membership_agreement.hpp>

#include "leaders.hpp"

namespace hpcai::comm {
namespace {

TEST(MembershipAgreement, AllLeadersVoteAsSoonAsTheLastArrives) {
    Leaders leaders(4);
    for (int group = 0; group < 4; ++group) leaders.arrive_at(group, 10 * (group + 1));
    EXPECT_LE(leaders.run(), 42);
    for (int group = 0; group < 4; ++group) {
        EXPECT_EQ(leaders.decision(group).voters(), (std::vector{0, 1, 2, 3}));
    }
}

TEST(MembershipAgreement, TheOnlyLeaderVotesAlone) {
    Leaders leaders(1);
    leaders.arrive_at(0, 0);
    EXPECT_LE(leaders.run(), 1);
    EXPECT_EQ(leaders.decision(0).voters(), (std::vector{0}));
}

TEST(MembershipAgreement, ASilentGroupIsExcludedAfterTheDeadline) {
    Leaders leaders(3);
    leaders.arrive_at(0, 0);
    leaders.arrive_at(2, 5);
    const double decided_at = leaders.run();
    EXPECT_GE(decided_at, 100);
    EXPECT_LE(decided_at, 110);
    for (const int group : {0, 2}) {
        EXPECT_EQ(leaders.decision(group).voters(), (std::vector{0, 2}));
        EXPECT_EQ(leaders.decision(group).status(1).state, GroupState::absent);
    }
}

TEST(MembershipAgreement, FollowersKeepALivingCollectorWhileItWaitsForASilentGroup) {
    Leaders leaders(4);
    leaders.arrive_at(1, 0);
    leaders.arrive_at(2, 50);
    leaders.arrive_at(0, 99);
    leaders.run();
    for (const int group : {0, 1, 2}) {
        EXPECT_EQ(leaders.decision(group).voters(), (std::vector{0, 1, 2}));
    }
}

TEST(MembershipAgreement, TheNextLeaderCollectsWhenTheFirstIsDead) {
    Leaders leaders(4);
    leaders.arrive_at(1, 0);
    leaders.arrive_at(2, 30);
    leaders.arrive_at(3, 150);
    leaders.run();
    for (const int group : {1, 2, 3}) {
        EXPECT_EQ(leaders.decision(group).voters(), (std::vector{1, 2, 3})) << group;
    }
}

TEST(MembershipAgreement, TheLastLeaderIsNotStoppedByTheDeathOfAllBefore) {
    Leaders leaders(3);
    leaders.arrive_at(2, 0);
    EXPECT_LE(leaders.run(), 207);
    EXPECT_EQ(leaders.decision(2).voters(), (std::vector{2}));
}

TEST(MembershipAgreement, ASlowFirstLeaderJoinsTheOneThatTookOver) {
    Leaders leaders(4);
    leaders.arrive_at(1, 0);
    leaders.arrive_at(2, 0);
    leaders.arrive_at(0, 120);
    leaders.arrive_at(3, 180);
    leaders.run();
    for (const int group : {0, 1, 2, 3}) {
        EXPECT_EQ(leaders.decision(group).voters(), (std::vector{0, 1, 2, 3})) << group;
    }
}

TEST(MembershipAgreement, ALeaderThatComesAfterTheDecisionStaysAlone) {
    Leaders leaders(3);
    leaders.arrive_at(0, 500);
    leaders.arrive_at(1, 0);
    leaders.arrive_at(2, 0);
    leaders.run();
    EXPECT_FALSE(leaders.decision(0).agreed);
    EXPECT_TRUE(leaders.decision(0).voters().empty());
    EXPECT_EQ(leaders.decision(0).status(0).state, GroupState::completed);
    EXPECT_EQ(leaders.decision(1).voters(), (std::vector{1, 2}));
}

TEST(MembershipAgreement, NoLeaderStartsASecondVoteAfterADecision) {
    MembershipAgreement agreement(GroupStatus::of(2, GroupState::completed), 4, kDeadlines, 0);
    agreement.advance(150);  // The first leader was silent, so this leader follows the second.
    agreement.receive({MembershipAgreementKind::closed, 0, 0, {}, {}}, 151);
    ASSERT_TRUE(agreement.decided());
    EXPECT_FALSE(agreement.decision().agreed);
}

TEST(MembershipAgreement, AFailedGroupIsReportedToAllAndMayCollectButDoesNotVote) {
    Leaders leaders(3);
    leaders.arrive_at(0, 0, GroupState::failed);
    leaders.arrive_at(1, 3);
    leaders.arrive_at(2, 4);
    EXPECT_LE(leaders.run(), 6);
    for (int group = 0; group < 3; ++group) {
        EXPECT_TRUE(leaders.decision(group).agreed);
        EXPECT_EQ(leaders.decision(group).voters(), (std::vector{1, 2}));
        EXPECT_EQ(leaders.decision(group).status(0).state, GroupState::failed);
    }
    EXPECT_FALSE(leaders.decision(0).votes(0));
}

TEST(MembershipAgreement, ALeaderThatDiesWhileItWaitsIsExcluded) {
    Leaders leaders(4);
    leaders.arrive_at(0, 0);
    leaders.arrive_at(1, 0);
    leaders.arrive_at(2, 0);
    leaders.arrive_at(3, 40);
    leaders.die_at(2, 20);
    EXPECT_LE(leaders.run(), 50);
    for (const int group : {0, 1, 3}) {
        EXPECT_EQ(leaders.decision(group).voters(), (std::vector{0, 1, 3})) << group;
    }
}

TEST(MembershipAgreement, AnyLeadersThatDieBeforeTheyForwardTheProposalExcludeThemselvesOnly) {
    constexpr int kGroups = 9;
    for (unsigned dead = 0; dead < 1u << (kGroups - 2); ++dead) {
        Leaders leaders(kGroups);
        std::vector<int> living{0};
        for (int group = 0; group < kGroups; ++group) {
            leaders.arrive_at(group, group + 1 == kGroups ? 40 : 0);
            if (group == 0) continue;
            (dead >> (group - 1)) % 2 == 1 ? leaders.die_at(group, 20) : living.push_back(group);
        }
        EXPECT_LE(leaders.run(), 46);
        for (const int group : living) ASSERT_EQ(leaders.decision(group).voters(), living) << dead;
    }
}

TEST(MembershipAgreement, ALeaderThatDiesBeforeItForwardsTheResultKeepsItFromNoOtherLeader) {
    constexpr int kGroups = 9;
    for (const GroupState state : {GroupState::completed, GroupState::failed}) {
        for (int victim = 1; victim + 1 < kGroups; ++victim) {
            Leaders leaders(kGroups);
            for (int group = 0; group < kGroups; ++group) leaders.arrive_at(group, 0, state);
            leaders.arrive_at(4, 40, state);
            leaders.die_at(kGroups - 1, 20);  // the collector waits for its reply from 40 to 45
            leaders.die_at(victim, 42);
            EXPECT_LE(leaders.run(), 50);
            for (int group = 0; group + 1 < kGroups; ++group) {
                if (group == victim) continue;
                ASSERT_TRUE(leaders.decision(group).agreed) << victim << " " << group;
                ASSERT_EQ(leaders.decision(group).voters().size(),
                          state == GroupState::completed ? kGroups - 1u : 0u);
            }
        }
    }
}

TEST(MembershipAgreement, AFollowerAsksItsCollectorHalfwayThroughEachWait) {
    using enum MembershipAgreementKind;
    const auto completed = [](int group) { return GroupStatus::of(group, GroupState::completed); };
    MembershipAgreement collector(completed(0), 3, kDeadlines, 0);
    MembershipAgreement follower(completed(2), 3, kDeadlines, 0);
    follower.take_outgoing();
    for (const double now : {50.0, 70.0, 90.0, 110.0, 130.0, 150.0}) {
        follower.advance(now - 1);
        EXPECT_TRUE(follower.take_outgoing().empty()) << now;
        follower.advance(now);
        const auto asked = follower.take_outgoing();
        ASSERT_EQ(asked.size(), 1u) << now;
        EXPECT_EQ(asked[0].to_group, 0);
        EXPECT_EQ(asked[0].message.kind, query);
        collector.receive(asked[0].message, now);
        const auto answer = collector.take_outgoing();
        ASSERT_EQ(answer.size(), 1u) << now;
        EXPECT_EQ(answer[0].to_group, 2);
        follower.receive(answer[0].message, now);
    }
    follower.advance(199);
    follower.take_outgoing();
    follower.advance(200);  // without an answer, it follows the next leader
    EXPECT_EQ(follower.take_outgoing().at(0).to_group, 1);
}

TEST(MembershipAgreement, ACollectorThatDiesIsReplaced) {
    Leaders leaders(3);
    leaders.arrive_at(0, 0);
    leaders.die_at(0, 50);
    leaders.arrive_at(1, 20);
    leaders.arrive_at(2, 90);
    leaders.run();
    for (const int group : {1, 2}) {
        EXPECT_EQ(leaders.decision(group).voters(), (std::vector{1, 2})) << group;
    }
}

/// For any order of arrival and any failed group, two leaders never have different lists that
/// contain both.
TEST(MembershipAgreement, NoTwoLeadersVoteWithDifferentLists) {
    constexpr std::array kTimes{0, 60, 99, 100, 101, 150, 205, 310};
    for (std::size_t trial = 0; trial < 4096; ++trial) {
        Leaders leaders(4);
        const int failed = static_cast<int>(trial % 5);  // 4: none
        for (int group = 0; group < 4; ++group) {
            leaders.arrive_at(group, kTimes[(trial >> (3 * group)) % kTimes.size()],
                              group == failed ? GroupState::failed : GroupState::completed);
        }
        leaders.run();
        std::optional<std::vector<int>> list;
        for (int group = 0; group < 4; ++group) {
            if (!leaders.decision(group).votes(group)) continue;
            if (!list) list = leaders.decision(group).voters();
            ASSERT_EQ(leaders.decision(group).voters(), *list) << "trial " << trial;
        }
        ASSERT_TRUE(list) << "trial " << trial;
        for (const int voter : *list) {
            ASSERT_TRUE(leaders.decision(voter).votes(voter)) << "trial " << trial;
        }
    }
}

/// As the previous test, with a leader that dies: no living leader waits forever or votes with
/// another list.
TEST(MembershipAgreement, NoTwoLeadersVoteWithDifferentListsWhenOneDies) {
    expect_one_list_where_one_goes(&Leaders::die_at);
}

TEST(MembershipAgreement, AGroupThatFailsEarlyWaitsForAllThatAreStillTraining) {
    for (int victim = 0; victim < 3; ++victim) {
        Leaders leaders(3);
        const int quick = (victim + 1) % 3;
        const int slow = (victim + 2) % 3;
        leaders.arrive_at(victim, 5, GroupState::failed);
        leaders.arrive_at(quick, 1500);
        leaders.arrive_at(slow, 1590);
        leaders.run();
        for (int group = 0; group < 3; ++group) {
            EXPECT_EQ(leaders.decision(group).status(victim).state, GroupState::failed) << group;
            EXPECT_EQ(leaders.decision(group).voters().size(), 2u)
                << "group " << victim << " failed, as group " << group << " sees it";
        }
    }
}

TEST(MembershipAgreement, IfAllButOneGroupFailEarlyTheyWaitForThatGroup) {
    for (int healthy = 0; healthy < 6; ++healthy) {
        Leaders leaders(6);
        for (int group = 0; group < 6; ++group) {
            if (group != healthy) leaders.arrive_at(group, 3 * group, GroupState::failed);
        }
        leaders.arrive_at(healthy, 2000);
        EXPECT_LE(leaders.run(), 2010);
        for (int group = 0; group < 6; ++group) {
            EXPECT_EQ(leaders.decision(group).voters(), (std::vector{healthy})) << group;
            EXPECT_EQ(leaders.decision(group).writer(), healthy);
        }
    }
}

TEST(MembershipAgreement, AGroupThatFailedEarlyStopsWaitingForADeadOneWhenTheCompletedOnesDo) {
    Leaders leaders(4);
    leaders.arrive_at(0, 5, GroupState::failed);
    leaders.arrive_at(1, 700);
    leaders.arrive_at(3, 760);  // group 2 is dead
    const double decided_at = leaders.run();
    EXPECT_GE(decided_at, 860) << "the grace period of the last completed group counts";
    EXPECT_LE(decided_at, 870);
    for (const int group : {0, 1, 3}) {
        EXPECT_EQ(leaders.decision(group).voters(), (std::vector{1, 3})) << group;
        EXPECT_EQ(leaders.decision(group).status(2).state, GroupState::absent);
    }
}

TEST(MembershipAgreement, WhenAllFailOrAreDeadTheWaitEndsAfterTheLongestRun) {
    Leaders leaders(3);
    leaders.arrive_at(0, 5, GroupState::failed);
    leaders.arrive_at(2, 9, GroupState::failed);
    const double decided_at = leaders.run();
    EXPECT_GE(decided_at, 2500);
    EXPECT_LE(decided_at, 2530);
    EXPECT_EQ(leaders.decision(0).writer(), 0);
    EXPECT_TRUE(leaders.decision(2).agreed);
}

TEST(MembershipAgreement, WhenGroupsStopTheyWaitForADeadGroupOnlyShortly) {
    Leaders leaders(4);
    leaders.stop_at(0, 5);
    leaders.stop_at(2, 7);
    leaders.stop_at(3, 19);
    const double decided_at = leaders.run();
    EXPECT_GE(decided_at, 39) << "the wait after the last stop is as long as after the first";
    EXPECT_LE(decided_at, 41);
    for (const int group : {0, 2, 3}) {
        EXPECT_TRUE(leaders.decision(group).agreed);
        EXPECT_EQ(leaders.decision(group).writer(), 0);
        EXPECT_TRUE(leaders.decision(group).status(3).has_stopped());
        EXPECT_EQ(leaders.decision(group).status(1).state, GroupState::absent);
    }
}

TEST(MembershipAgreement, WhenGroupsStopAndTheFirstLeaderIsDeadTheNextCollectsSoon) {
    Leaders leaders(4);
    leaders.stop_at(1, 0);
    leaders.stop_at(2, 3);
    leaders.stop_at(3, 15);
    EXPECT_LE(leaders.run(), 41);
    for (const int group : {1, 2, 3}) {
        EXPECT_TRUE(leaders.decision(group).agreed);
        EXPECT_EQ(leaders.decision(group).writer(), 1);
        EXPECT_TRUE(leaders.decision(group).status(3).has_stopped());
    }
}

TEST(MembershipAgreement, TheLastToStopIsDoneSoonWhenAllBeforeAreDead) {
    Leaders leaders(8);
    leaders.stop_at(7, 0);
    EXPECT_LE(leaders.run(), 20 + 3 * 10 + 6);
    EXPECT_EQ(leaders.decision(7).writer(), 7);
}

TEST(MembershipAgreement, AStopEndsTheWaitOfGroupsThatCompletedOrFailedBefore) {
    for (const GroupState state : {GroupState::completed, GroupState::failed}) {
        Leaders leaders(3);
        leaders.arrive_at(0, 0, state);
        leaders.stop_at(1, 50);
        EXPECT_LE(leaders.run(), 72);
        EXPECT_TRUE(leaders.decision(1).agreed);
        EXPECT_EQ(leaders.decision(1).status(0).state, state);
    }
}

TEST(MembershipAgreement, ACollectorThatWaitsLongKeepsItsFollowers) {
    Leaders leaders(3);
    leaders.arrive_at(0, 0, GroupState::failed);
    leaders.arrive_at(1, 0, GroupState::failed);
    leaders.arrive_at(2, 1900);
    EXPECT_LE(leaders.run(), 1905);
    EXPECT_TRUE(leaders.decision(1).agreed)
        << "it received notices from the collector all the time";
}

TEST(MembershipAgreement, AfterFourSilentLeadersEveryoneCollectsWhateverTheNumberOfGroups) {
    Leaders leaders(12);
    for (int group = 4; group < 12; ++group) leaders.arrive_at(group, 0);
    EXPECT_LE(leaders.run(), 520);
    for (int group = 4; group < 12; ++group) {
        EXPECT_EQ(leaders.decision(group).voters(), (std::vector{4, 5, 6, 7, 8, 9, 10, 11}));
    }
}

}  // namespace
}  // namespace hpcai::comm
