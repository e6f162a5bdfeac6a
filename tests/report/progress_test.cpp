// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include <gmock/gmock.h>

#include <hpcai/base/text.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/progress.hpp>

namespace hpcai::report {
namespace {

ProgressRecord training_progress() {
    ProgressRecord progress;
    progress.host = "node7";
    progress.epoch = 2;
    progress.epochs = 3;
    progress.step = 17;
    progress.steps = 24;
    progress.loss = {1.25, ""};
    progress.images_per_second = {512, ""};
    progress.seconds_left = {90, ""};
    progress.written_unix_seconds = 1'700'000'000;
    return progress;
}

GroupProgress group_in(int number, ProgressState state, const std::string& reason = "") {
    ProgressRecord progress = training_progress();
    progress.state = state;
    progress.reason = reason;
    return {number, progress, ""};
}

RunProgress run_of(std::vector<GroupProgress> groups) {
    RunProgress run{"results/a", std::move(groups), 1'700'000'125};
    run.is_locked = false;
    return run;
}

std::vector<std::string> status_lines(const RunProgress& run) {
    std::istringstream in(progress_table(run));
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

std::string message_of(const std::string& text) {
    try {
        records::from_json<ProgressRecord>(text, "progress.json");
    } catch (const Error& error) {
        return error.code() == ExitCode::data ? error.what() : "another code";
    }
    return "";
}

TEST(ProgressJson, GivesBackWhatWasWritten) {
    for (const ProgressState state :
         {ProgressState::training, ProgressState::evaluating, ProgressState::finished,
          ProgressState::failed, ProgressState::stopped, ProgressState::terminated,
          ProgressState::unsaved}) {
        ProgressRecord progress = training_progress();
        progress.state = state;
        progress.loss = {std::nullopt, "not known yet"};
        EXPECT_EQ(records::from_json<ProgressRecord>(records::to_json(progress), "a"), progress);
    }
}

TEST(ProgressJson, IsRejectedByTheNameOfItsKey) {
    std::string text = records::to_json(training_progress());
    text.replace(text.find("\"training\""), 10, "\"dancing\"");
    EXPECT_NE(message_of(text).find("state"), std::string::npos) << message_of(text);
    ProgressRecord late = training_progress();
    late.written_unix_seconds = std::int64_t{1} << 60;  // no date that can be printed
    EXPECT_NE(message_of(records::to_json(late)).find("written_unix_seconds"), std::string::npos);
    EXPECT_NE(message_of("{}").find("schema"), std::string::npos);
    EXPECT_NE(message_of("[").find("progress.json"), std::string::npos);
}

TEST(ProgressTable, HasARowForEachGroup) {
    auto run = run_of({group_in(0, ProgressState::training), {1, std::nullopt, ""}});
    run.is_locked = true;
    const auto lines = status_lines(run);
    ASSERT_EQ(lines.size(), 5U);
    EXPECT_EQ(lines[1],
              "0     training        2/3         17/24  1.2500    512.0  1 min 30 s  2 min 05 s");
    EXPECT_TRUE(lines[2].starts_with("1     not started"));
    EXPECT_EQ(lines[3], "leaders: group 0 on node7");
    EXPECT_EQ(lines[4], "STATUS RUNNING  groups=2 training=1 directory=results/a");
    run.is_locked = false;
    EXPECT_THAT(status_lines(run)[1], testing::Not(testing::HasSubstr("1 min 30 s")))
        << "a run that has died has no remaining time";
    run.now_unix_seconds = 1'700'000'001;
    EXPECT_THAT(status_lines(run)[1], testing::HasSubstr("1 min 30 s"))
        << "the lock of another node may be hidden";
}

TEST(ProgressTable, WithoutLocksTellsFromTheHeartbeatThatARunIsRunning) {
    auto run = run_of({group_in(0, ProgressState::training)});
    run.is_locked = std::nullopt;
    EXPECT_THAT(status_lines(run).back(), testing::StartsWith("STATUS UNFINISHED "));
    run.now_unix_seconds = 1'700'000'000 + kUnlockedSilenceSeconds - 1;
    EXPECT_THAT(status_lines(run).back(), testing::StartsWith("STATUS RUNNING "));
    run.is_locked = false;
    EXPECT_THAT(status_lines(run).back(), testing::StartsWith("STATUS UNFINISHED "));
    run = run_of({group_in(0, ProgressState::stopped)});
    run.is_locked = std::nullopt;
    EXPECT_THAT(status_lines(run).back(), testing::StartsWith("STATUS STOPPED "));
}

TEST(ProgressTable, ReportsWhyGroupsFailedWithoutTheirEscapes) {
    auto run = run_of({group_in(0, ProgressState::failed, "no \x1b[2J more\nSTATUS FINE"),
                       {1, std::nullopt, "'p': bad"}});
    run.groups.front().progress->host = "\x1b]0;x\x07";
    const auto lines = status_lines(run);
    ASSERT_EQ(lines.size(), 7U);
    EXPECT_EQ(lines[4], "reason: group 0: no \\x1b[2J more\\nSTATUS FINE");
    EXPECT_EQ(lines[5], "reason: group 1: 'p': bad");
    EXPECT_TRUE(lines[2].starts_with("1     unreadable"));
    EXPECT_EQ(progress_table(run).find('\x1b'), std::string::npos);
}

TEST(ProgressTable, ShowsASignalOfTheUserAsAStop) {
    const auto terminated = group_in(0, ProgressState::terminated);
    const auto finished = group_in(1, ProgressState::finished);
    EXPECT_TRUE(
        progress_table(run_of({terminated, finished}))
            .ends_with("STATUS STOPPED  groups=2 finished=1 stopped=1 directory=results/a\n"));
    const auto failed = group_in(1, ProgressState::failed);
    EXPECT_NE(progress_table(run_of({terminated, failed})).find(" terminated=1 "),
              std::string::npos)
        << "the launcher may have sent the signal";
}

TEST(ProgressTable, TakesAClockThatIsAheadForNow) {
    auto run = run_of({group_in(0, ProgressState::training)});
    run.now_unix_seconds = 5;
    EXPECT_TRUE(status_lines(run)[1].ends_with("  now")) << status_lines(run)[1];
}

TEST(ProgressTable, ReportsWhenARunHasBeenSilentForLong) {
    auto run = run_of({group_in(0, ProgressState::training), {1, std::nullopt, ""}});
    EXPECT_EQ(silence_seconds(run), 125);
    run.now_unix_seconds = 1'700'000'000 + kSilenceSeconds - 1;
    EXPECT_EQ(progress_table(run).find("no heartbeat"), std::string::npos);
    ++run.now_unix_seconds;
    EXPECT_NE(progress_table(run).find(
                  "\nno heartbeat for 10 min 00 s: the run has died or hangs\nSTATUS"),
              std::string::npos)
        << progress_table(run);
    run.started_unix_seconds = run.now_unix_seconds - 5;  // resumed
    EXPECT_EQ(silence_seconds(run), 5);
    run.started_unix_seconds = 0;
    run.is_locked = true;
    EXPECT_NE(progress_table(run).find(
                  " a program is running: it copies samples,\n    evaluates or hangs\nSTATUS"),
              std::string::npos)
        << progress_table(run);
    run.is_locked = std::nullopt;
    EXPECT_NE(progress_table(run).find(": the lock of its directory cannot be read\n"),
              std::string::npos)
        << progress_table(run);
    EXPECT_EQ(silence_seconds(run_of({group_in(0, ProgressState::stopped)})), std::nullopt);
    EXPECT_EQ(silence_seconds(run_of({{0, std::nullopt, ""}})), std::nullopt) << "nothing shows it";
}

TEST(ExitCodeOfProgress, DistinguishesStoppedAndFailedFromUnfinished) {
    const auto finished = group_in(0, ProgressState::finished);
    const auto stopped = group_in(1, ProgressState::stopped);
    const auto failed = group_in(1, ProgressState::failed);
    const auto training = group_in(2, ProgressState::training);
    EXPECT_EQ(exit_code_of(run_of({finished, stopped})), ExitCode::stopped);
    EXPECT_EQ(exit_code_of(run_of({failed, stopped})), ExitCode::stopped);
    const auto terminated = group_in(2, ProgressState::terminated);
    EXPECT_EQ(exit_code_of(run_of({finished, terminated})), ExitCode::stopped);
    EXPECT_EQ(exit_code_of(run_of({failed, stopped, terminated})), ExitCode::watchdog)
        << "the launcher may have ended it after another rank died";
    auto resumed = run_of({finished, stopped});
    resumed.is_locked = true;
    EXPECT_EQ(exit_code_of(resumed), ExitCode::watchdog)
        << "before its groups have written progress";
    const auto unsaved = group_in(2, ProgressState::unsaved);
    EXPECT_EQ(exit_code_of(run_of({finished, stopped, unsaved})), ExitCode::internal)
        << "a job that resumes from the same checkpoint again and again must end";
    EXPECT_EQ(exit_code_of(run_of({finished, stopped, training})), ExitCode::watchdog);
    EXPECT_EQ(exit_code_of(run_of({failed, failed})), ExitCode::all_groups_failed);
    EXPECT_EQ(exit_code_of(run_of({failed, finished})), ExitCode::watchdog);
    EXPECT_EQ(exit_code_of(run_of({finished})), ExitCode::watchdog);
    EXPECT_EQ(exit_code_of(run_of({})), ExitCode::watchdog);
    EXPECT_EQ(exit_code_of(run_of({{0, std::nullopt, ""}})), ExitCode::watchdog);
}

TEST(RunProgress, IsOverWhenNoGroupWillReportMore) {
    const auto finished = group_in(0, ProgressState::finished);
    const auto failed = group_in(1, ProgressState::failed);
    const auto terminated = group_in(2, ProgressState::terminated);
    auto run = run_of({failed, terminated});
    EXPECT_TRUE(is_over(run));
    run.is_locked = true;
    EXPECT_FALSE(is_over(run));
    run.is_locked = std::nullopt;
    EXPECT_TRUE(is_over(run));
    EXPECT_TRUE(is_over(run_of({failed, failed})));
    run = run_of({finished, failed});
    EXPECT_FALSE(is_over(run)) << "they vote";
    run.now_unix_seconds = 1'700'000'000 + kSilenceSeconds;
    EXPECT_TRUE(is_over(run));
    run.is_locked = true;
    EXPECT_FALSE(is_over(run));
    EXPECT_FALSE(is_over(run_of({})));
}

TEST(ProgressTable, HasTheCommandThatResumesARunWhoseGroupsHaveEnded) {
    auto run = run_of({group_in(0, ProgressState::stopped, "stopped at step 17 by SIGUSR1")});
    run.next_command = "mpirun -np 2 hpcai500 resume results/a";
    const auto lines = status_lines(run);
    ASSERT_EQ(lines.size(), 6U);
    EXPECT_EQ(lines[3], "reason: group 0: stopped at step 17 by SIGUSR1");
    EXPECT_EQ(lines[4], "resume: mpirun -np 2 hpcai500 resume results/a");
    run.is_locked = true;
    EXPECT_EQ(status_lines(run)[4], "a process still works on this run; ask again");
    EXPECT_TRUE(status_lines(run)[5].starts_with("STATUS UNFINISHED ")) << "no group trains";
}

TEST(ProgressTable, HasTheCommandThatResumesARunThatHasDied) {
    auto run = run_of({group_in(0, ProgressState::training)});
    run.next_command = "mpirun -np 2 hpcai500 resume results/a";
    EXPECT_EQ(status_lines(run)[3], "resume: mpirun -np 2 hpcai500 resume results/a");
    run.now_unix_seconds = 1'700'000'000 + kUnlockedSilenceSeconds - 1;
    EXPECT_EQ(status_lines(run)[3],
              "resume, unless another node runs it, whose lock may be hidden: mpirun -np 2 \\");
    run.was_on_this_node = true;
    EXPECT_EQ(status_lines(run)[3], "resume: mpirun -np 2 hpcai500 resume results/a");
    EXPECT_EQ(status_lines(run)[1].find("1 min 30 s"), std::string::npos) << "no time is left";
    EXPECT_THAT(status_lines(run)[1], testing::StartsWith("0     interrupted "));
    run.was_on_this_node = false;
    run.now_unix_seconds = 1'700'000'125;
    run.is_locked = std::nullopt;
    EXPECT_EQ(status_lines(run).size(), 4U);
}

TEST(ProgressTable, StatesTheStepFromWhichARunThatHasDiedWouldResume) {
    auto run = run_of({group_in(0, ProgressState::training)});
    run.resume_step = 12;
    EXPECT_EQ(status_lines(run)[3],
              "`resume` would start from step 12: the newest complete checkpoint");
    run.resume_step = 0;
    EXPECT_EQ(status_lines(run)[3], "`resume` would start from step 0: no checkpoint is complete");
    run.now_unix_seconds = 1'700'000'000 + kUnlockedSilenceSeconds - 1;
    EXPECT_THAT(status_lines(run)[3], testing::StartsWith("STATUS UNFINISHED "))
        << "another node may run it";
    run.is_locked = true;
    EXPECT_THAT(status_lines(run)[3], testing::StartsWith("STATUS RUNNING "));
    run = run_of({group_in(0, ProgressState::training), {1, std::nullopt, ""}});
    run.resume_step = 0;
    EXPECT_EQ(status_lines(run)[4], "`resume` would start from step 0: no checkpoint is complete");
    run.resume_group = 1;
    EXPECT_EQ(status_lines(run)[4],
              "`resume` would start group 1 from step 0: no checkpoint is complete");
    run = run_of({group_in(0, ProgressState::stopped)});
    run.resume_step = 17;
    EXPECT_THAT(status_lines(run)[3], testing::StartsWith("STATUS STOPPED ")) << "see its reason";
}

TEST(ProgressTable, ShowsNoGroupOfADeadRunAtWork) {
    auto run = run_of({group_in(0, ProgressState::training), group_in(1, ProgressState::evaluating),
                       group_in(2, ProgressState::terminated)});
    const auto lines = status_lines(run);
    EXPECT_THAT(lines[1], testing::StartsWith("0     interrupted     2/3 "));
    EXPECT_THAT(lines[2], testing::StartsWith("1     interrupted "));
    EXPECT_EQ(lines.back(),
              "STATUS UNFINISHED  groups=3 interrupted=2 terminated=1 directory=results/a");
    run.now_unix_seconds = 1'700'000'001;
    EXPECT_THAT(status_lines(run)[2], testing::StartsWith("1     evaluating "))
        << "another node may run it";
}

TEST(ProgressTable, TellsThatARunIsEndingWhileItsProcessesHoldTheLock) {
    auto run = run_of({group_in(0, ProgressState::training), group_in(1, ProgressState::training)});
    run.is_locked = true;
    EXPECT_FALSE(is_ending(run));
    run.groups[1].progress->state = ProgressState::failed;
    EXPECT_FALSE(is_ending(run)) << "the other group continues";
    run.groups[0].progress->state = ProgressState::failed;
    EXPECT_TRUE(is_ending(run));
    for (const ProgressState state :
         {ProgressState::stopped, ProgressState::terminated, ProgressState::unsaved}) {
        run.groups[1].progress->state = ProgressState::training;
        run.groups[0].progress->state = state;
        run.is_locked = true;
        EXPECT_TRUE(is_ending(run));
        run.is_locked = false;
        EXPECT_FALSE(is_ending(run)) << "it has ended";
    }
}

TEST(ProgressTable, FitsAPageUpToTheLineForTools) {
    auto run =
        run_of({group_in(1023, ProgressState::evaluating,
                         "no memory: " + std::string(60, 'a') + " and " + std::string(60, 'b'))});
    ProgressRecord& progress = *run.groups[0].progress;
    progress.epoch = progress.epochs = 100;
    progress.step = progress.steps = 450'000;
    progress.images_per_second = {12'345.6, ""};
    progress.seconds_left = {86'340, ""};
    run.groups.push_back({1024, progress, ""});
    run.now_unix_seconds += 86'000;
    run.is_locked = std::nullopt;
    run.next_command =
        "mpirun -np 4096 --map-by ppr:8:node hpcai500 resume /scratch/project/run-17";
    auto lines = status_lines(run);
    EXPECT_TRUE(lines.back().starts_with("STATUS ")) << "tools read this line";
    lines.pop_back();
    for (const std::string& line : lines) EXPECT_LE(line.size(), kPageWidth) << line;
    EXPECT_TRUE(lines[1].starts_with("1023  interrupted 100/100 450000/450000  1.2500  12345.6 "));
}

}  // namespace
}  // namespace hpcai::report
