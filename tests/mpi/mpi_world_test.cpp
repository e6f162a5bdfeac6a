// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <hpcai/comm/mpi_world.hpp>

#include "world.hpp"

namespace hpcai::comm {
namespace {

using mpi_tests::world;

constexpr MembershipAgreementDeadlines kLong{.status_seconds = 60, .reply_seconds = 30};
constexpr MembershipAgreementDeadlines kShort{.status_seconds = 1.5, .reply_seconds = 2};

/// Returns groups of one rank, so that every rank is a leader.
std::vector<int> every_rank_leads() {
    std::vector<int> leaders(static_cast<std::size_t>(world().mpi.size()));
    std::iota(leaders.begin(), leaders.end(), 0);
    return leaders;
}

/// Checks that exactly `voters` have a communicator, in this order.
void expect_voters(AgreedMembers& agreed, const std::vector<int>& voters) {
    const int rank = world().mpi.rank();
    ASSERT_EQ(agreed.decision.voters(), voters);
    const auto place = std::ranges::find(voters, rank);
    ASSERT_EQ(agreed.leaders != nullptr, place != voters.end());
    if (!agreed.leaders) return;
    EXPECT_EQ(agreed.leaders->size(), static_cast<int>(voters.size()));
    EXPECT_EQ(agreed.leaders->rank(), static_cast<int>(place - voters.begin()));
    std::array<double, 1> sum{static_cast<double>(rank)};
    agreed.leaders->all_reduce_sum(sum);
    EXPECT_EQ(sum[0], std::accumulate(voters.begin(), voters.end(), 0.0));
}

TEST(MpiWorld, KnowsHostsAndNodes) {
    const auto ranks = static_cast<std::size_t>(world().mpi.size());
    std::array<char, 256> name{};
    ASSERT_EQ(gethostname(name.data(), name.size() - 1), 0);
    EXPECT_EQ(world().hosts, std::vector<std::string>{name.data()}) << "the tests run on one host";
    EXPECT_EQ(world().node_of_world_rank, std::vector<int>(ranks, 0));
    const std::string version = MpiWorld::library_version();
    EXPECT_NE(version, "");
    EXPECT_EQ(version.find('\0'), std::string::npos) << "it goes into result.json";
}

TEST(MpiWorld, StartsUpOnlyOnce) {
    EXPECT_THROW(world().mpi.start_up(), Error);
}

TEST(MpiWorld, AllLeadersVote) {
    MpiWorld& mpi = world().mpi;
    world().everyone.barrier();
    AgreedMembers agreed = mpi.agree_on_members(GroupStatus::of(mpi.rank(), GroupState::completed),
                                                every_rank_leads(), kLong);
    expect_voters(agreed, every_rank_leads());
    world().everyone.barrier();
}

TEST(MpiWorld, AGroupThatFailedReportsButDoesNotVote) {
    MpiWorld& mpi = world().mpi;
    if (mpi.size() == 1) GTEST_SKIP() << "needs two ranks";
    world().everyone.barrier();
    const GroupStatus mine = mpi.rank() == 0
                                 ? GroupStatus::of(0, GroupState::failed, ExitCode::data, "no data")
                                 : GroupStatus::of(mpi.rank(), GroupState::completed);
    AgreedMembers agreed = mpi.agree_on_members(mine, every_rank_leads(), kLong);
    std::vector<int> voters = every_rank_leads();
    voters.erase(voters.begin());
    expect_voters(agreed, voters);
    const GroupStatus failed = agreed.decision.status(0);
    EXPECT_EQ(failed.state, GroupState::failed);
    EXPECT_EQ(failed.exit_code, ExitCode::data);
    EXPECT_EQ(agreed.decision.writer(), 1);
    if (mpi.rank() == 1) {
        EXPECT_EQ(failed.reason_text(), "no data") << "the writer needs the reason";
    }
    world().everyone.barrier();
}

/// Afterwards, the silent rank reads its stale messages in a separate vote and is its only voter.
void vote_without(int silent) {
    MpiWorld& mpi = world().mpi;
    const GroupStatus mine = GroupStatus::of(mpi.rank(), GroupState::completed);
    const std::vector<int> leaders = every_rank_leads();
    world().everyone.barrier();
    if (mpi.rank() != silent) {
        AgreedMembers agreed = mpi.agree_on_members(mine, leaders, kShort);
        std::vector<int> voters = leaders;
        voters.erase(voters.begin() + silent);
        expect_voters(agreed, voters);
    }
    world().everyone.barrier();
    if (mpi.rank() == silent) {
        const AgreedMembers late = mpi.agree_on_members(mine, leaders, kShort);
        EXPECT_FALSE(late.decision.agreed);
        EXPECT_EQ(late.leaders, nullptr);
    }
    world().everyone.barrier();
}

TEST(MpiWorld, ASilentGroupDoesNotStopTheOthers) {
    if (world().mpi.size() == 1) GTEST_SKIP() << "needs two ranks";
    vote_without(world().mpi.size() - 1);
}

TEST(MpiWorld, ASilentFirstGroupIsReplacedByTheNext) {
    if (world().mpi.size() == 1) GTEST_SKIP() << "needs two ranks";
    vote_without(0);
}

/// The last rank was silent in a vote, whose messages are still pending.
TEST(MpiWorld, StartsAnotherRunThatReceivesNothingOfThePreviousOne) {
    MpiWorld& mpi = world().mpi;
    const int last = mpi.size() - 1;
    const GroupStatus mine = GroupStatus::of(mpi.rank(), GroupState::completed);
    world().everyone.barrier();
    if (mpi.rank() != last) mpi.agree_on_members(mine, every_rank_leads(), kShort);
    world().everyone.barrier();
    if (mpi.rank() == 0) {
        std::vector<int> others = every_rank_leads();
        others.erase(others.begin());
        mpi.release(others, NextAction::another_run);
    } else {
        EXPECT_EQ(mpi.wait_for_exit_permit(0, 60), NextAction::another_run);
    }
    StartUp again = mpi.start_up();
    EXPECT_EQ(again.node_of_world_rank(), world().node_of_world_rank);
    const auto group = std::move(again).split(0, mpi.rank());
    EXPECT_EQ(group->size(), mpi.size());
    EXPECT_THROW(mpi.start_up(), Error) << "once a run";
    AgreedMembers agreed = mpi.agree_on_members(mine, every_rank_leads(), kLong);
    expect_voters(agreed, every_rank_leads());
    world().everyone.barrier();
}

TEST(MpiWorld, TheGracePeriodExceedsAnyRunUnlessAnExitEndsNoOtherRank) {
    const bool alone = std::getenv("OMPI_MCA_orte_enable_recovery") == nullptr;
    EXPECT_EQ(world().mpi.grace_seconds() > 24.0 * 3600, alone);
}

TEST(MpiWorld, ReleaseLetsTheWaitingRanksGo) {
    MpiWorld& mpi = world().mpi;
    world().everyone.barrier();
    if (mpi.rank() == 0) {
        std::vector<int> others = every_rank_leads();
        others.erase(others.begin());
        mpi.release(others);
    } else {
        EXPECT_EQ(mpi.wait_for_exit_permit(0, 60), NextAction::exit);
        EXPECT_EQ(mpi.wait_for_exit_permit(0, 0.01), std::nullopt);
    }
    world().everyone.barrier();
}

}  // namespace
}  // namespace hpcai::comm
