// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch.hpp"
#include "storage/temporary_folder.hpp"

/// Ranks that die or hang while their groups train: the other groups finish.
namespace hpcai::end_to_end {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

// run.step_timeout_seconds is 12; on a busy machine the watchdog may react later.
constexpr const char* kSilence = "no step was done for (1[2-9]|[2-9][0-9]) s";

constexpr int kEndless = 30000;  // epochs; no group finishes them

/// Groups whose ranks receive signals after the first epoch of the group. progress.json is written
/// every two seconds, so a fast machine may finish the training between two updates.
class LostRank : public testing::Test {
protected:
    void SetUp() override {
        if (std::getenv("HPCAI500_RECOVERY") == nullptr) {
            GTEST_SKIP() << "this mpirun ends all ranks with the first";
        }
        make_pictures(folder_.path());
        write(folder_ / "tiny.yaml", kConfig);
    }

    /// With this option mpirun keeps the other ranks running and returns 0.
    static std::string recovery() { return cli::environment("HPCAI500_RECOVERY"); }
    Outcome run_with(const std::string& signal, int world_rank,
                     const std::vector<std::string>& options = {recovery()}) {
        return run_groups({2, 2}, {{signal, world_rank}}, options);
    }

    struct Groups {
        int count, ranks_of_each;
    };
    struct Signal {
        std::string name;
        int world_rank;
    };
    Outcome run_groups(const Groups& groups, const std::vector<Signal>& signals,
                       const std::vector<std::string>& options) {
        std::string script = "#!/bin/bash\n";
        bool hangs = false;
        for (const Signal& signal : signals) {
            script += fmt::format(
                "if [ \"${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}\" = {} ]; then (\n"
                "  until grep -q ' epoch 1/{}: ' result/groups/{}/log.txt; do\n"
                "    kill -0 $$ || exit\n    sleep 0.02\n  done 2> /dev/null\n"
                "  echo $$ > child.{}\n  kill -{} $$\n"
                "  \"$HPCAI500_BINARY\" score result 2> intruder.{}\n) & fi\n",
                signal.world_rank, epochs_, signal.world_rank / groups.ranks_of_each,
                signal.world_rank, signal.name, signal.world_rank);
            hangs = hangs || signal.name == "STOP";
        }
        write(folder_ / "mortal.sh", script + "exec \"$HPCAI500_BINARY\" \"$@\"\n");
        fs::permissions(folder_ / "mortal.sh", fs::perms::owner_all);
        Launch launch{folder_.path(),
                      groups.count * groups.ranks_of_each,
                      {fmt::format("bagging.M={}", groups.count),
                       fmt::format("bagging.P_degree={}", groups.ranks_of_each),
                       fmt::format("training.batch_size={}", 4 * groups.ranks_of_each),
                       fmt::format("workload.epochs={}", epochs_), "run.group_timeout_seconds=300"},
                      options};
        // Without a hang, no timeout may expire, even on a busy machine.
        if (hangs) launch.changes.emplace_back("run.step_timeout_seconds=12");
        launch.program = (folder_ / "mortal.sh").string();
        return run(launch);
    }

    Outcome status() { return cli::run_in(folder_.path(), {"status", "result"}); }

    /// Returns true if the signalled rank ends soon after mpirun. The program does not control
    /// which process reads the exit code of an orphan, and when.
    bool goes_away(int world_rank) {
        const std::string wait = fmt::format(
            "[ -s child.{0} ] || exit 2; for i in {{1..300}}; do grep -q "
            "'^State:[[:space:]]*[^ZX[:space:]]' "
            "/proc/$(cat child.{0})/status || exit 0; sleep 0.1; done 2> /dev/null; exit 1",
            world_rank);
        return cli::execute_in(folder_.path(), {"bash", "-c", wait}).exit_code == 0;
    }

    std::string failure_of(int group) {
        return json_of(folder_ / "result/result.json")["work"]["groups"][group]["failure"];
    }

    storage::TemporaryFolder folder_;
    int epochs_ = 30;
};

TEST_F(LostRank, ThatIsKilledIsNamedByTheOthersOfItsGroupAndTheOtherGroupVotes) {
    run_with("KILL", 3);
    const Outcome outcome = status();
    EXPECT_EQ(outcome.exit_code, 7) << outcome.out << outcome.error;
    EXPECT_THAT(outcome.out, HasSubstr("RESULT PARTIAL"));
    EXPECT_THAT(failure_of(1),
                MatchesRegex("a rank has died, after [0-9]+ steps?: rank 1 \\(world rank 3 on .*, "
                             "process [0-9]+\\) has died; the flight records are in "
                             "groups/1/flight"));
    const nlohmann::json flight = json_of(folder_ / "result/groups/1/flight/rank-0.json");
    EXPECT_EQ(flight["world_rank"], 2);
    EXPECT_GT(flight["steps_done"], 0);
    EXPECT_GT(flight["all_reduces_started"], 0);
    EXPECT_EQ(flight["events"].back()["end_seconds"], nullptr) << "it was waiting";
    EXPECT_FALSE(fs::exists(folder_ / "result/groups/1/flight/rank-1.json"));
    EXPECT_FALSE(fs::exists(folder_ / "result/groups/0/flight"));
    EXPECT_EQ(cli::run_in(folder_.path(), {"verify", "result"}).exit_code, 0);
}

TEST_F(LostRank, ThatLedItsGroupIsReportedByTheNext) {
    run_with("KILL", 2);
    const Outcome outcome = status();
    EXPECT_EQ(outcome.exit_code, 7) << outcome.out << outcome.error;
    EXPECT_THAT(failure_of(1), HasSubstr("rank 0 (world rank 2 on "));
    EXPECT_THAT(failure_of(1), HasSubstr("has died"));
}

TEST_F(LostRank, ThatIsTheFirstOfAllLeavesTheOthersToVote) {
    epochs_ = 60;  // the intruder must start while the other group trains
    run_with("KILL", 0);
    const Outcome outcome = status();
    EXPECT_EQ(outcome.exit_code, 7) << outcome.out << outcome.error;
    EXPECT_THAT(failure_of(0), HasSubstr("rank 0 (world rank 0 on "));
    EXPECT_EQ(failure_of(1), "");
    EXPECT_THAT(text_of(folder_ / "intruder.0"), HasSubstr("another program uses it"));
}

TEST_F(LostRank, OfALargerGroupIsTheOnlyOneThatIsNamed) {
    run_groups({1, 4}, {{"KILL", 2}}, {recovery()});
    const Outcome outcome = status();
    EXPECT_EQ(outcome.exit_code, 5) << outcome.out << outcome.error;
    EXPECT_THAT(failure_of(0), HasSubstr(": rank 2 (world rank 2 on "));
    EXPECT_THAT(failure_of(0), Not(HasSubstr("answer")));
    for (const int innocent : {0, 1, 3}) {
        const auto file = fmt::format("result/groups/0/flight/rank-{}.json", innocent);
        ASSERT_TRUE(fs::exists(folder_ / file)) << file;
        EXPECT_EQ(json_of(folder_ / file)["answers"], true) << file;
    }
}

TEST_F(LostRank, ThatHangsAndLedItsGroupIsReportedByTheNext) {
    run_with("STOP", 2);
    const Outcome outcome = status();
    EXPECT_EQ(outcome.exit_code, 7) << outcome.out << outcome.error;
    EXPECT_THAT(failure_of(1), ContainsRegex(kSilence));
    EXPECT_THAT(failure_of(1), HasSubstr("rank 0 (world rank 2 on "));
    EXPECT_TRUE(goes_away(2));
}

TEST_F(LostRank, ThatHangsIsNamedByTheWatchdogAndDoesNotStay) {
    run_with("STOP", 3);
    const Outcome outcome = status();
    EXPECT_EQ(outcome.exit_code, 7) << outcome.out << outcome.error;
    EXPECT_THAT(failure_of(1), ContainsRegex(kSilence));
    EXPECT_THAT(failure_of(1), HasSubstr("rank 1 (world rank 3 on "));
    EXPECT_THAT(failure_of(1), HasSubstr("does not answer"));
    EXPECT_TRUE(goes_away(3));
}

TEST_F(LostRank, ThatHangsEndsWithTheJobWhereAnExitEndsAll) {
    const Outcome outcome = run_with("STOP", 3, {});
    EXPECT_EQ(outcome.exit_code, 7) << outcome.out << outcome.error;
    EXPECT_THAT(outcome.out, HasSubstr("RESULT PARTIAL"));
    EXPECT_THAT(failure_of(1), HasSubstr("does not answer"));
    EXPECT_TRUE(goes_away(3));
}

/// The launcher resumes the leader's process before it kills it. With short steps, the leader may
/// first detect the death of the other rank and write the final state.
TEST_F(LostRank, ThatHangsAndLedTheOnlyGroupEndsTheJob) {
    write(folder_ / "tiny.yaml", kResNet50Config);
    const Outcome outcome = run_groups({1, 2}, {{"STOP", 0}}, {});
    EXPECT_EQ(outcome.exit_code, 6) << outcome.out << outcome.error;
    EXPECT_THAT(json_of(folder_ / "result/groups/0/record.json")["record"]["failure"],
                HasSubstr("no step was done for "));
    EXPECT_TRUE(goes_away(0));
}

/// The group's files also name the acting leader.
TEST_F(LostRank, ThatLedItsGroupDoesNotKeepTheOthersFromAStop) {
    epochs_ = kEndless;
    const Outcome run = run_groups({2, 2}, {{"KILL", 2}, {"USR1", 0}}, {recovery()});
    EXPECT_THAT(run.out, HasSubstr("STOPPED step="));
    const Outcome outcome = status();
    EXPECT_EQ(outcome.exit_code, 8) << outcome.out << outcome.error;
    EXPECT_THAT(outcome.out, HasSubstr(" failed=1 stopped=1 "));
    EXPECT_THAT(outcome.out, HasSubstr("reason: group 1: a rank has died"));
}

TEST_F(LostRank, ThatWasItsWholeGroupDoesNotKeepTheOthersFromAStop) {
    epochs_ = kEndless;
    const Outcome run = run_groups({3, 1}, {{"KILL", 1}, {"USR1", 0}, {"USR1", 2}}, {recovery()});
    EXPECT_THAT(run.out, HasSubstr("STOPPED step=0 "));  // the step at which the lost group resumes
    // The other ranks do not wait for the lost rank at the end of MPI.
    EXPECT_THAT(run.error, HasSubstr("MPI_Finalize did not return within 6 s"));
    EXPECT_THAT(run.error, Not(HasSubstr("within 60 s")));
    const Outcome outcome = status();
    EXPECT_EQ(outcome.exit_code, 8) << outcome.out << outcome.error;
    EXPECT_THAT(outcome.out, HasSubstr(" failed=1 stopped=2 "));
    EXPECT_THAT(outcome.out, HasSubstr("reason: group 1: no final status was received"));
}

/// SIGTERM, by which launchers end the other ranks after a death, is not a request to stop and
/// requeue.
TEST_F(LostRank, WithOneThatSigtermHasEndedIsACrash) {
    epochs_ = kEndless;
    const Outcome run = run_groups({2, 2}, {{"STOP", 3}, {"TERM", 0}}, {});
    EXPECT_EQ(run.exit_code, 6) << run.out << run.error;
    EXPECT_THAT(run.out, HasSubstr("STOPPED step="));
    EXPECT_TRUE(goes_away(3));
    const Outcome outcome = status();
    EXPECT_EQ(outcome.exit_code, 6) << outcome.out << outcome.error;
    EXPECT_THAT(outcome.out, HasSubstr(" failed=1 terminated=1 "));
    // Killed ranks may hold the directory's lock for a moment after the end of mpirun.
    const std::string wait =
        "for i in {1..100}; do \"$HPCAI500_BINARY\" status result | "
        "grep -q '^resume: mpirun .*-np 4 ' && exit; sleep 0.1; done; exit 1";
    EXPECT_EQ(cli::execute_in(folder_.path(), {"bash", "-c", wait}).exit_code, 0);
}

}  // namespace
}  // namespace hpcai::end_to_end
