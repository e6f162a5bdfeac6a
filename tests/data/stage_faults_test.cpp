// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "staging.hpp"
#include "support/failing_disk.hpp"

/// A run that is killed, or whose disk is full, at each call that changes the staging folder.
namespace hpcai::data {
namespace {

namespace fs = std::filesystem;
using test::Staged;
using tests::files_below;

enum Ending : int { kCompleted = 0, kRefused = 2, kNotStruck = 90, kWrongBytes = 91, kOther = 92 };

class StageFaults : public testing::Test {
protected:
    StageFaults()
        : shared_(folder_.path() / "shared"),
          other_(folder_.path() / "other"),
          config_(test::staging_config(folder_.path() / "local")) {
        setenv("HPCAI500_DISK_FOLDER", "hpcai500-stage-", 1);
        for (int file = 0; file < 5; ++file) shared_.add(300'000 + file);  // three in a pack
        for (int file = 0; file < 2; ++file) other_.add(600'000);
    }
    ~StageFaults() override {
        for (const char* name : {"FOLDER", "CALL", "FAULT"}) {
            unsetenv(("HPCAI500_DISK_" + std::string(name)).c_str());
        }
    }

    fs::path training() const {
        return folder_.path() / "local" / ("hpcai500-stage-" + std::to_string(geteuid())) /
               "training";
    }
    void damage(const std::string& name, std::size_t offset) const {
        test::Bytes bytes = test::read_file_bytes(training() / name);
        bytes.at(offset) ^= 1;
        test::write_file_bytes(training() / name, bytes);
    }
    /// Prepares the folder in the `state` that the run finds.
    void prepare(const std::string& state) const {
        fs::remove_all(folder_.path() / "local");
        fs::create_directories(folder_.path() / "local");
        if (state == "nothing") return;
        test::stage_at_one_rank(config_, (state == "another set" ? other_ : shared_).request());
        if (state == "a damaged pack") damage("pack-000000", 1000);
        if (state == "a damaged index") damage("pack-000001.index", 0);
    }
    bool has_all(const Staged& staged) const {
        for (std::uint32_t file = 0; file < shared_.files(); ++file) {
            if (staged.pictures->read(file) != shared_.bytes(file)) return false;
        }
        return true;
    }
    /// Stages, reads and cleans up in a separate process. Returns its status as waitpid() does.
    int run_with(const char* fault, int call) const {
        const pid_t child = fork();
        if (child == 0) {
            setenv("HPCAI500_DISK_FAULT", fault, 1);
            setenv("HPCAI500_DISK_CALL", std::to_string(call).c_str(), 1);
            config::Config config = config_;
            config.data.staging_cleanup = config::StagingCleanup::remove;
            try {
                const Staged staged = test::stage_at_one_rank(config, shared_.request());
                if (!has_all(staged) || staged.staging_lock->lost_copies() > 0) _exit(kWrongBytes);
                staged.staging_lock->release(true);
            } catch (const Error& error) {
                const std::string said = error.what();
                const bool is_clear = error.code() == ExitCode::usage &&
                                      said.find("hpcai500-stage-") != std::string::npos &&
                                      said.find("No space left") != std::string::npos;
                _exit(is_clear ? kRefused : kOther);
            } catch (...) {
                _exit(kOther);
            }
            _exit(calls_of_failing_disk() < call ? kNotStruck : kCompleted);
        }
        int status = 0;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        return status;
    }
    /// Checks that the next run uses the existing files and keeps no others of the previous run.
    void expect_next_run() const {
        const Staged again = test::stage_at_one_rank(config_, shared_.request());
        EXPECT_TRUE(has_all(again));
        EXPECT_EQ(again.staging_lock->lost_copies(), 0);
        EXPECT_EQ(files_below(training()),
                  (std::vector<std::string>{"pack-000000", "pack-000000.index", "pack-000001",
                                            "pack-000001.index"}));
    }

    static constexpr const char* kStates[] = {"nothing", "an intact folder", "another set",
                                              "a damaged pack", "a damaged index"};
    test::TemporaryFolder folder_;
    test::SharedFiles shared_;
    test::SharedFiles other_;
    config::Config config_;
};

TEST_F(StageFaults, AKillBetweenAnyTwoCallsIsSurvived) {
    for (const std::string state : kStates) {
        int call = 1;
        for (bool struck = true; struck; ++call) {
            SCOPED_TRACE(state + ", call " + std::to_string(call));
            prepare(state);
            const int status = run_with("kill", call);
            struck = WIFSIGNALED(status);
            if (struck) {
                ASSERT_EQ(WTERMSIG(status), SIGKILL);
            } else {
                ASSERT_EQ(WEXITSTATUS(status), kNotStruck);
            }
            expect_next_run();
            if (HasFailure()) return;
        }
        EXPECT_GT(call, state == "an intact folder" ? 8 : 20) << state;
    }
}

TEST_F(StageFaults, ADiskThatGetsFullAtAnyCallEndsTheRunWithAClearMessage) {
    for (const std::string state : {"nothing", "a damaged pack"}) {
        int refused = 0;
        int ending = kRefused;
        for (int call = 1; ending != kNotStruck; ++call) {
            SCOPED_TRACE(state + ", call " + std::to_string(call));
            prepare(state);
            const int status = run_with("full", call);
            ASSERT_TRUE(WIFEXITED(status));
            ending = WEXITSTATUS(status);
            ASSERT_THAT(ending, testing::AnyOf(kCompleted, kRefused, kNotStruck));
            refused += ending == kRefused;
            expect_next_run();
            if (HasFailure()) return;
        }
        EXPECT_GT(refused, 10) << state;
    }
}

TEST_F(StageFaults, OfProcessesThatMakeAStageAtOnceOneHasIt) {
    constexpr int kRounds = 60;
    for (int round = 0; round < kRounds; ++round) {
        prepare("nothing");
        int gate[2];
        ASSERT_EQ(pipe(gate), 0);
        pid_t children[2];
        for (pid_t& child : children) {
            child = fork();
            if (child != 0) continue;
            close(gate[1]);
            char none = 0;
            if (read(gate[0], &none, 1) != 0) _exit(kOther);  // until the parent closes it
            const auto [code, said] = test::refused([&] {
                test::stage_at_one_rank(config_, other_.request()).staging_lock->release(true);
            });
            if (code == ExitCode::ok) _exit(kCompleted);
            if (said.find("is in use") != std::string::npos) _exit(kRefused);
            std::fprintf(stderr, "%s\n", said.c_str());
            _exit(kOther);
        }
        close(gate[0]);
        close(gate[1]);
        std::vector<int> endings;
        for (const pid_t child : children) {
            int status = 0;
            ASSERT_EQ(waitpid(child, &status, 0), child);
            endings.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : kOther);
        }
        ASSERT_THAT(endings, testing::Each(testing::AnyOf(kCompleted, kRefused)));
        ASSERT_THAT(endings, testing::Contains(kCompleted));
    }
}

}  // namespace
}  // namespace hpcai::data
