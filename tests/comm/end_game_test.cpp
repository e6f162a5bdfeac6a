// SPDX-License-Identifier: Apache-2.0
#include "hpcai/comm/end_game.hpp"

#include <deque>
#include <map>
#include <optional>

#include <gtest/gtest.h>

namespace hpcai::comm {
namespace {

constexpr EndGameDeadlines kDeadlines{
    .status_seconds = 100, .reply_seconds = 5, .notice_seconds = 40, .longest_seconds = 2500};

/// Leaders with mailboxes under a clock that jumps a second at a time. A leader that has not
/// arrived reads nothing; a dead one never will.
class Leaders {
public:
    explicit Leaders(int groups) : mailboxes_(static_cast<std::size_t>(groups)) {}

    void arrive_at(int group, double seconds, GroupState state = GroupState::completed) {
        arrivals_[group] = {seconds, state};
    }
    void die_at(int group, double seconds) { deaths_[group] = seconds; }
    /// It dies, and another rank of its group tells all leaders.
    void lose_at(int group, double seconds) {
        die_at(group, seconds);
        losses_[group] = seconds;
    }

    /// Returns the time at which the last living leader had decided.
    double run() {
        for (now_ = 0; now_ < 3000; ++now_) {
            for (const auto& [group, seconds] : losses_) {
                if (now_ == seconds) tell_of_loss(group);
            }
            // Several passes within a second stand for messages that are faster than deadlines.
            for (int pass = 0; pass < 6; ++pass) step_all();
            if (all_decided()) return now_;
        }
        ADD_FAILURE() << "somebody never decided";
        return now_;
    }

    const EndGameDecision& decision(int group) const { return games_.at(group).decision(); }

private:
    struct Arrival {
        double seconds;
        GroupState state;
    };

    bool dead(int group) const { return deaths_.contains(group) && now_ >= deaths_.at(group); }

    void tell_of_loss(int group) {
        const GroupStatus status =
            GroupStatus::of(group, GroupState::lost, ExitCode::watchdog, "rank 0 has died");
        for (std::size_t other = 0; other < mailboxes_.size(); ++other) {
            mailboxes_[other].push_back(
                EndGameMessage{EndGameKind::status, group, 0, {status}, {}}.to_bytes());
        }
    }

    void step_all() {
        for (const auto& [group, arrival] : arrivals_) {
            if (now_ < arrival.seconds || dead(group)) continue;
            if (!games_.contains(group)) {
                games_.try_emplace(group, GroupStatus::of(group, arrival.state),
                                   static_cast<int>(mailboxes_.size()), kDeadlines, now_);
            }
            step(group, games_.at(group));
        }
    }

    void step(int group, EndGame& game) {
        auto& mailbox = mailboxes_[static_cast<std::size_t>(group)];
        deliver(game);
        while (!mailbox.empty()) {
            const EndGameMessage message = EndGameMessage::from_bytes(mailbox.front());
            mailbox.pop_front();
            game.receive(message, now_);
        }
        game.advance(now_);
        deliver(game);
    }

    void deliver(EndGame& game) {
        for (const AddressedMessage& sent : game.take_outgoing()) {
            mailboxes_.at(static_cast<std::size_t>(sent.to_group))
                .push_back(sent.message.to_bytes());
        }
    }

    bool all_decided() const {
        for (const auto& [group, arrival] : arrivals_) {
            if (dead(group)) continue;
            if (!games_.contains(group) || !games_.at(group).decided()) return false;
        }
        return true;
    }

    std::vector<std::deque<std::vector<std::byte>>> mailboxes_;
    std::map<int, Arrival> arrivals_;
    std::map<int, double> deaths_;
    std::map<int, double> losses_;
    std::map<int, EndGame> games_;
    double now_ = 0;
};

TEST(EndGame, AllLeadersVoteAsSoonAsTheLastArrives) {
    Leaders leaders(4);
    for (int group = 0; group < 4; ++group) leaders.arrive_at(group, 10 * (group + 1));
    EXPECT_LE(leaders.run(), 42);
    for (int group = 0; group < 4; ++group) {
        EXPECT_EQ(leaders.decision(group).voters(), (std::vector{0, 1, 2, 3}));
    }
}

TEST(EndGame, TheOnlyLeaderVotesAlone) {
    Leaders leaders(1);
    leaders.arrive_at(0, 0);
    EXPECT_LE(leaders.run(), 1);
    EXPECT_EQ(leaders.decision(0).voters(), (std::vector{0}));
}

TEST(EndGame, ASilentGroupIsLeftOutAfterTheDeadline) {
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

TEST(EndGame, FollowersOfALivingCollectorDoNotGiveItUpWhileItWaitsForASilentGroup) {
    Leaders leaders(4);
    leaders.arrive_at(1, 0);
    leaders.arrive_at(2, 50);
    leaders.arrive_at(0, 99);
    leaders.run();
    for (const int group : {0, 1, 2}) {
        EXPECT_EQ(leaders.decision(group).voters(), (std::vector{0, 1, 2}));
    }
}

TEST(EndGame, TheNextLeaderCollectsWhenTheFirstIsDead) {
    Leaders leaders(4);
    leaders.arrive_at(1, 0);
    leaders.arrive_at(2, 30);
    leaders.arrive_at(3, 150);
    leaders.run();
    for (const int group : {1, 2, 3}) {
        EXPECT_EQ(leaders.decision(group).voters(), (std::vector{1, 2, 3})) << group;
    }
}

TEST(EndGame, TheLastLeaderIsNotStoppedByTheDeathOfAllBefore) {
    Leaders leaders(3);
    leaders.arrive_at(2, 0);
    EXPECT_LE(leaders.run(), 207);
    EXPECT_EQ(leaders.decision(2).voters(), (std::vector{2}));
}

TEST(EndGame, ASlowFirstLeaderJoinsTheOneThatTookOver) {
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

TEST(EndGame, ALeaderThatComesAfterTheDecisionStaysAlone) {
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

TEST(EndGame, NobodyStartsASecondVoteAfterADecision) {
    EndGame game(GroupStatus::of(2, GroupState::completed), 4, kDeadlines, 0);
    game.advance(150);  // The first leader was silent: it follows the second.
    game.receive({EndGameKind::closed, 0, 0, {}, {}}, 151);
    ASSERT_TRUE(game.decided());
    EXPECT_FALSE(game.decision().agreed);
}

TEST(EndGame, AFailedGroupIsKnownToAllButDoesNotVoteAndMayCollect) {
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

TEST(EndGame, ALeaderThatDiesWhileItWaitsIsLeftOut) {
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

TEST(EndGame, ACollectorThatDiesIsReplaced) {
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

/// Whatever the order of arrival, two leaders never hold different lists with themselves in them,
/// whichever group has failed.
TEST(EndGame, NoTwoLeadersVoteWithDifferentLists) {
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

/// The same when one of them dies on the way: nobody living waits for ever or votes with another
/// list.
TEST(EndGame, NoTwoLeadersVoteWithDifferentListsWhenOneDies) {
    constexpr std::array kTimes{0, 99, 101, 205};
    for (std::size_t trial = 0; trial < 2048; ++trial) {
        Leaders leaders(4);
        for (int group = 0; group < 4; ++group) {
            leaders.arrive_at(group, kTimes[(trial >> (2 * group)) % kTimes.size()]);
        }
        const int victim = static_cast<int>(trial / 256 % 4);
        leaders.die_at(victim, trial / 1024 == 0 ? 100 : 206);
        leaders.run();
        std::optional<std::vector<int>> list;
        for (int group = 0; group < 4; ++group) {
            if (group == victim || !leaders.decision(group).votes(group)) continue;
            if (!list) list = leaders.decision(group).voters();
            ASSERT_EQ(leaders.decision(group).voters(), *list) << "trial " << trial;
        }
    }
}

TEST(EndGame, NobodyWaitsForALostGroupAndTheWriterKnowsWhy) {
    for (int victim = 0; victim < 3; ++victim) {
        Leaders leaders(3);
        for (int group = 0; group < 3; ++group) {
            if (group != victim) leaders.arrive_at(group, 40 + group);
        }
        leaders.lose_at(victim, 30);
        EXPECT_LE(leaders.run(), 50) << "group " << victim;
        for (int group = 0; group < 3; ++group) {
            if (group == victim) continue;
            const EndGameDecision& decision = leaders.decision(group);
            EXPECT_EQ(decision.voters().size(), 2u);
            EXPECT_EQ(decision.status(victim).state, GroupState::lost);
            EXPECT_EQ(decision.status(victim).exit_code, ExitCode::watchdog);
            EXPECT_FALSE(decision.anyone_absent());
            EXPECT_TRUE(decision.anyone_lost());
            if (group != decision.writer()) continue;
            EXPECT_EQ(decision.status(victim).reason_text(), "rank 0 has died");
        }
    }
}

TEST(EndGame, OfLostAndFailedGroupsAFailedOneWrites) {
    Leaders leaders(3);
    leaders.lose_at(0, 5);
    leaders.arrive_at(1, 20, GroupState::failed);
    leaders.lose_at(2, 10);
    EXPECT_LE(leaders.run(), 30);
    EXPECT_TRUE(leaders.decision(1).agreed);
    EXPECT_EQ(leaders.decision(1).writer(), 1);
    EXPECT_TRUE(leaders.decision(1).voters().empty());
}

TEST(EndGame, ALeaderThatWasThoughtLostAndTellsItsFailureIsBelieved) {
    Leaders leaders(2);
    leaders.arrive_at(0, 100);
    leaders.arrive_at(1, 31, GroupState::failed);
    leaders.lose_at(1, 30);
    leaders.die_at(1, 3000);
    leaders.run();
    EXPECT_EQ(leaders.decision(0).status(1).state, GroupState::failed);
    EXPECT_TRUE(leaders.decision(1).agreed);
}

/// The same when one is lost: told by another rank of its group, when the others have long come,
/// or before.
TEST(EndGame, NoTwoLeadersVoteWithDifferentListsWhenOneIsLost) {
    constexpr std::array kTimes{0, 99, 101, 205};
    for (std::size_t trial = 0; trial < 2048; ++trial) {
        Leaders leaders(4);
        for (int group = 0; group < 4; ++group) {
            leaders.arrive_at(group, kTimes[(trial >> (2 * group)) % kTimes.size()]);
        }
        const int victim = static_cast<int>(trial / 256 % 4);
        leaders.lose_at(victim, trial / 1024 == 0 ? 100 : 206);
        leaders.run();
        std::optional<std::vector<int>> list;
        for (int group = 0; group < 4; ++group) {
            if (group == victim || !leaders.decision(group).votes(group)) continue;
            if (!list) list = leaders.decision(group).voters();
            ASSERT_EQ(leaders.decision(group).voters(), *list) << "trial " << trial;
        }
    }
}

TEST(EndGame, AGroupThatFailsEarlyWaitsForAllThatAreStillTraining) {
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

TEST(EndGame, AllButOneGroupFailEarlyAndTheOneIsWaitedFor) {
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

TEST(EndGame, AGroupThatFailedEarlyGivesUpADeadOneWhenTheCompletedOnesDo) {
    Leaders leaders(4);
    leaders.arrive_at(0, 5, GroupState::failed);
    leaders.arrive_at(1, 700);
    leaders.arrive_at(3, 760);  // group 2 is dead
    const double decided_at = leaders.run();
    EXPECT_GE(decided_at, 860) << "the patience of the last completed group counts";
    EXPECT_LE(decided_at, 870);
    for (const int group : {0, 1, 3}) {
        EXPECT_EQ(leaders.decision(group).voters(), (std::vector{1, 3})) << group;
        EXPECT_EQ(leaders.decision(group).status(2).state, GroupState::absent);
    }
}

TEST(EndGame, WhenAllFailOrAreDeadTheWaitEndsAfterTheLongestRun) {
    Leaders leaders(3);
    leaders.arrive_at(0, 5, GroupState::failed);
    leaders.arrive_at(2, 9, GroupState::failed);
    const double decided_at = leaders.run();
    EXPECT_GE(decided_at, 2500);
    EXPECT_LE(decided_at, 2530);
    EXPECT_EQ(leaders.decision(0).writer(), 0);
    EXPECT_TRUE(leaders.decision(2).agreed);
}

TEST(EndGame, ACollectorThatWaitsLongKeepsItsFollowersWithoutLettingThemGo) {
    Leaders leaders(3);
    leaders.arrive_at(0, 0, GroupState::failed);
    leaders.arrive_at(1, 0, GroupState::failed);
    leaders.arrive_at(2, 1900);
    EXPECT_LE(leaders.run(), 1905);
    EXPECT_TRUE(leaders.decision(1).agreed) << "it heard from the collector all the time";
}

TEST(EndGame, AfterFourSilentLeadersEveryoneCollectsWhateverTheNumberOfGroups) {
    Leaders leaders(12);
    for (int group = 4; group < 12; ++group) leaders.arrive_at(group, 0);
    EXPECT_LE(leaders.run(), 520);
    for (int group = 4; group < 12; ++group) {
        EXPECT_EQ(leaders.decision(group).voters(), (std::vector{4, 5, 6, 7, 8, 9, 10, 11}));
    }
}

}  // namespace
}  // namespace hpcai::comm
