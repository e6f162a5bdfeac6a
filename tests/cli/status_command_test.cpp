// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <chrono>
#include <ctime>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <hpcai/base/units.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/progress.hpp>

#include "child_process.hpp"
#include "report/example_record.hpp"

namespace hpcai::cli {
namespace {

namespace fs = std::filesystem;

class Status : public ::testing::Test {
protected:
    void write(const std::string& name, const std::string& text) const {
        const fs::path path = folder_ / name;
        fs::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << text;
    }

    void write_progress(int group, ProgressState state, const std::string& reason = "") const {
        ProgressRecord progress;
        progress.state = state;
        progress.reason = reason;
        write("run/groups/" + std::to_string(group) + "/progress.json", records::to_json(progress));
    }

    Outcome status(const std::string& directory = "run") const {
        return run_in(folder_.path(), {"status", directory});
    }

    const TemporaryFolder folder_;
};

TEST_F(Status, RejectsADirectoryWithoutARun) {
    expect_refused(status("nowhere"), 2, "nowhere: expected the result directory of a run");
    expect_refused(status("."), 2,
                   ".: expected the result directory of a run, with its config.yaml");
    fs::create_directories(folder_ / "killed/groups");
    fs::create_directories(folder_ / "killed/evaluation");
    expect_refused(status("killed"), 2,
                   "; the launch that created this directory was killed: remove it");
    expect_refused(run_in(folder_.path(), {"status", ".", "--interval", "0"}), 2,
                   "status: --interval: expected a number from 0.1 to 86400, got '0'");
}

TEST_F(Status, ExitsAsTheVerdictDoes) {
    RunRecord record = report::partial_record();
    write("run/result.json", records::to_json(record));
    write("run/config.yaml", "bagging: {M: 2, P_degree: 1}\n");
    EXPECT_EQ(status().exit_code, 6) << "the manifest is written last";

    write("run/manifest.sha256", "");
    const Outcome partial = status();
    EXPECT_EQ(partial.exit_code, 7) << partial.error;
    EXPECT_TRUE(partial.out.starts_with("report: hpcai500 report run\nRESULT PARTIAL  workload="))
        << "the summary is missing; " << partial.out;
    EXPECT_TRUE(partial.out.ends_with(
        "=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n"));
}

TEST_F(Status, RejectsADamagedResult) {
    write("run/result.json", "{\"schema\": 3}");
    write("run/manifest.sha256", "");
    expect_refused(status(), 4, "run/result.json");
}

TEST_F(Status, ReportsTheProgressOfARunWithoutAResult) {
    write("run/config.yaml", "bagging: {M: 3, P_degree: 1}\n");
    EXPECT_EQ(status().exit_code, 6);
    write_progress(0, ProgressState::training);
    write_progress(1, ProgressState::finished);
    const Outcome outcome = status();
    EXPECT_EQ(outcome.exit_code, 6) << outcome.error;
    EXPECT_NE(outcome.out.find("\n2     not started"), std::string::npos) << outcome.out;
    EXPECT_TRUE(outcome.out.ends_with(
        "\nSTATUS UNFINISHED  groups=3 training=1 finished=1 directory=run\n"))
        << outcome.out;
}

TEST_F(Status, ExitsWith8WhereTheRunHasStopped) {
    write("run/config.yaml", "bagging: {M: 2, P_degree: 1}\n");
    write_progress(0, ProgressState::stopped, "stopped at step 7");
    write_progress(1, ProgressState::finished);
    const Outcome outcome = status();
    EXPECT_EQ(outcome.exit_code, 8) << outcome.error;
    EXPECT_NE(outcome.out.find("\nreason: group 0: stopped at step 7\n"), std::string::npos);
    EXPECT_EQ(run_in(folder_.path(), {"status", "run", "--watch"}).exit_code, 8)
        << "--watch must end";
}

TEST_F(Status, DoesNotReportAStopIfTheLauncherEndedTheRunAfterADeath) {
    write("run/config.yaml", "bagging: {M: 2, P_degree: 1}\n");
    write_progress(0, ProgressState::failed, "a rank has died");
    write_progress(1, ProgressState::terminated, "stopped at step 7 by SIGTERM");
    const Outcome outcome = run_in(folder_.path(), {"status", "run", "--watch"});
    EXPECT_EQ(outcome.exit_code, 6) << "a job that is requeued for 8 would die again";
    EXPECT_TRUE(outcome.out.ends_with(
        "\nSTATUS UNFINISHED  groups=2 failed=1 terminated=1 directory=run\n"))
        << outcome.out;
}

TEST_F(Status, ReportsThatAResultIsBeingResumed) {
    write("run/result.json", records::to_json(report::partial_record()));
    write("run/config.yaml", "bagging: {M: 2, P_degree: 1}\n");
    write("run/manifest.sha256", "");
    const fs::path locked = folder_ / "run/config.yaml";
    const int file = open(locked.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(flock(file, LOCK_EX), 0);
    EXPECT_NE(status().out.find("STATUS RUNNING  groups=2 "), std::string::npos) << status().out;
    EXPECT_EQ(status().exit_code, 6) << "`resume` holds the lock until it has checked the data";
    ASSERT_EQ(flock(file, LOCK_SH), 0);
    EXPECT_EQ(status().exit_code, 7) << "leaders that have not ended hold the lock";
    close(file);
    EXPECT_EQ(status().exit_code, 7);
}

TEST_F(Status, WaitsForTheLastProcessesOfARunThatIsEnding) {
    write("run/config.yaml", "bagging: {M: 2, P_degree: 1}\n");
    write_progress(0, ProgressState::training);
    write_progress(1, ProgressState::terminated, "stopped at step 7 by SIGTERM");
    const fs::path locked = folder_ / "run/config.yaml";
    const int file = open(locked.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(flock(file, LOCK_SH), 0);
    std::thread group_0([&] {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        write_progress(0, ProgressState::terminated, "stopped at step 7 by SIGTERM");
        close(file);
    });
    const Outcome outcome = status();
    group_0.join();
    EXPECT_EQ(outcome.exit_code, 8) << outcome.out;
    EXPECT_TRUE(outcome.out.ends_with("\nSTATUS STOPPED  groups=2 stopped=2 directory=run\n"))
        << outcome.out;
}

TEST_F(Status, EndsItsWatchOfARunWithoutAHeartbeatForTenMinutes) {
    write("run/config.yaml", "bagging: {M: 1, P_degree: 1}\n");
    write("run/launch.json", "{}");
    fs::last_write_time(folder_ / "run/launch.json",
                        fs::file_time_type::clock::now() - std::chrono::minutes(11));
    const Outcome outcome = run_in(folder_.path(), {"status", "run", "--watch"});
    EXPECT_EQ(outcome.exit_code, 6) << outcome.error;
    EXPECT_NE(outcome.out.find("no heartbeat for 11 min"), std::string::npos) << outcome.out;
}

TEST_F(Status, StatesTheStepFromWhichARunThatWasKilledWouldResume) {
    write("run/config.yaml", "bagging: {M: auto, P_degree: 2}\n");
    write("run/launch.json", records::to_json(report::example_launch()));
    write_progress(0, ProgressState::training);
    for (const char* marker : {"05/rank-0", "05/rank-1", "07/rank-0"})
        write(fmt::format("run/checkpoints/0/step-0000000000{}.done", marker), "");
    const int events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    ASSERT_GE(inotify_add_watch(events, (folder_ / "run/checkpoints/0").c_str(), IN_OPEN), 0);
    std::array<char, 4096> event{};
    EXPECT_THAT(status().out, testing::Not(testing::HasSubstr("would start")));
    EXPECT_EQ(read(events, event.data(), event.size()), -1) << "it lists files in vain";
    fs::last_write_time(folder_ / "run/launch.json",
                        fs::file_time_type::clock::now() - std::chrono::minutes(1));
    EXPECT_THAT(status().out, testing::HasSubstr("`resume` would start group 1 from step 0: no "))
        << "group 1 has not begun";
    EXPECT_GT(read(events, event.data(), event.size()), 0);
    close(events);
    write_progress(1, ProgressState::evaluating);  // killed after it removed its checkpoints
    write("run/groups/1/record.json", records::to_json(GroupResult{}));
    EXPECT_THAT(status().out, testing::HasSubstr("from step 5: the newest complete"));
}

TEST_F(Status, KnowsAtOnceThatARunOfThisNodeIsDead) {
    write("run/config.yaml", "bagging: {M: 1, P_degree: 1}\n");
    ProgressRecord progress;
    progress.seconds_left = {90.0, ""};
    progress.written_unix_seconds = std::time(nullptr);
    write("run/groups/0/progress.json", records::to_json(progress));
    LaunchRecord launch = report::example_launch();
    launch.topology = {.ranks = 1, .groups = 1, .degree = 1, .nodes = 1};
    launch.topology.map.resize(1);
    const auto with_host = [&](const std::string& host) {
        launch.topology.map[0].host = host;
        write("run/launch.json", records::to_json(launch));
        return status().out;
    };
    EXPECT_THAT(with_host("another"), testing::HasSubstr("resume, unless another node runs it, "));
    std::array<char, 256> name{};
    ASSERT_EQ(gethostname(name.data(), name.size() - 1), 0);
    const std::string here = with_host(name.data());
    EXPECT_THAT(here, testing::HasSubstr("\nresume: mpirun "));
    EXPECT_THAT(here, testing::HasSubstr("`resume` would start from step 0: no checkpoint is"));
    EXPECT_THAT(here, testing::Not(testing::HasSubstr("1 min 30 s")));
}

TEST_F(Status, CallsARunByItsOwnNameInsteadOfTheLinkLatest) {
    write("run/config.yaml", "bagging: {M: 1, P_degree: 1}\n");
    write("run/launch.json", records::to_json(report::example_launch()));
    write_progress(0, ProgressState::stopped);
    fs::create_directory_symlink("run", folder_ / "latest");
    EXPECT_EQ(status("latest").out, status("run").out);
}

TEST_F(Status, NamesProgressThatCannotBeRead) {
    write("run/config.yaml", "bagging: {M: auto, P_degree: 1}\n");
    write("run/groups/0/progress.json", "{");
    write("run/groups/1/progress.json", std::string(100'000, ' '));
    const Outcome outcome = status();
    EXPECT_EQ(outcome.exit_code, 6) << outcome.error;
    EXPECT_NE(outcome.out.find("\n0     unreadable"), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("reason: group 1: 'run/groups/1/progress.json' has 100000 bytes"),
              std::string::npos)
        << outcome.out;
}

TEST_F(Status, ShowsTheCurrentRepetition) {
    write("run/config.yaml", "run: {repeat: 2}\nbagging: {M: 1, P_degree: 1}\n");
    write("run/repetition_1/config.yaml", "bagging: {M: 1, P_degree: 1}\n");
    const Outcome outcome = status();
    EXPECT_EQ(outcome.exit_code, 6) << outcome.error;
    EXPECT_TRUE(outcome.out.starts_with("repetition 1 of 2\n")) << outcome.out;
    EXPECT_TRUE(outcome.out.ends_with("directory=run/repetition_1\n")) << outcome.out;
}

TEST_F(Status, EstimatesTheTimeLeftOfAllRepetitions) {
    write("run/config.yaml", "run: {repeat: 3}\nbagging: {M: 2, P_degree: 1}\n");
    write("run/repetition_1/config.yaml", "bagging: {M: 2, P_degree: 1}\n");
    const auto write_heartbeats = [&](std::int64_t age) {
        for (const int group : {0, 1}) {
            ProgressRecord progress;
            progress.step = 90;  // the last tenth takes 30 and 60 s, two runs 20 times as long
            progress.steps = 100;
            progress.seconds_left = {30.0 * (group + 1), ""};
            progress.written_unix_seconds = std::time(nullptr) - age;
            write(fmt::format("run/repetition_1/groups/{}/progress.json", group),
                  records::to_json(progress));
        }
    };
    write_heartbeats(0);
    const std::string line = "repetition 1 of 3, " + format_seconds(60 * 21) + " left in total\n";
    EXPECT_TRUE(status().out.starts_with(line)) << "the lock of another node may be hidden";
    write_heartbeats(report::kUnlockedSilenceSeconds);
    EXPECT_TRUE(status().out.starts_with("repetition 1 of 3\n")) << "no program trains";
}

}  // namespace
}  // namespace hpcai::cli
