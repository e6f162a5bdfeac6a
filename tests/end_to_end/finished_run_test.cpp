// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "resumed_run.hpp"

/// Runs whose groups have trained, and what later programs may do to them.
namespace hpcai::end_to_end {
namespace {

using Strings = std::vector<std::string>;

class FinishedRun : public ResumedRun {
protected:
    /// Runs the program without mpirun; `variables` are "NAME=value".
    Outcome begin_alone(const std::string& output, const Strings& variables = {}) const {
        return cli::run_in(folder_.path(),
                           {"run", "--config", "tiny.yaml", "--output", output, "--set",
                            "bagging.M=1", "--set", "training.batch_size=12"},
                           variables);
    }
    /// Kills the program instead of its first rename to `name`.
    static Strings kill_at(const std::string& name) {
        return {"LD_PRELOAD=" + cli::environment("HPCAI500_FAILING_DISK"),
                "HPCAI500_DISK_FOLDER=/" + name, "HPCAI500_DISK_FAULT=kill",
                "HPCAI500_DISK_CALL=1"};
    }
    /// The command that `hpcai500 status result` names.
    std::string next_command() const {
        const Outcome status = cli::run_in(folder_.path(), {"status", "result"});
        std::istringstream lines(status.out);
        for (std::string line; std::getline(lines, line);) {
            const std::size_t colon = line.find(": ");
            if (line.find(" hpcai500 ") != std::string::npos && colon != std::string::npos)
                return line.substr(colon + 2);
        }
        ADD_FAILURE() << "no command in\n" << status.out << status.error;
        return "false";
    }
    Outcome execute(const std::string& command, Strings variables = {}) const {
        const fs::path program = cli::environment("HPCAI500_BINARY");
        variables.push_back("PATH=" + program.parent_path().string() + ":" +
                            cli::environment("PATH"));
        return cli::execute_in(folder_.path(), {"bash", "-c", command}, variables);
    }
    /// Paths of the files in `output` that the program wrote after the beginning of the training.
    std::set<std::string> late_files(const std::string& output) const {
        std::set<std::string> names;
        for (const auto& entry : fs::recursive_directory_iterator(folder_ / output)) {
            if (!entry.is_regular_file()) continue;
            names.insert(entry.path().lexically_relative(folder_ / output).string());
        }
        for (const char* early : {"config.yaml", "launch.json", "groups/0/log.txt"}) {
            EXPECT_EQ(names.erase(early), 1U) << early;
        }
        return names;
    }
};

TEST_F(FinishedRun, IsRepairedByOneCommandAfterAKillBeforeAnyOfItsFiles) {
    ASSERT_EQ(begin_alone("whole").exit_code, 0);
    const std::set<std::string> files = late_files("whole");
    ASSERT_EQ(files.size(), 14U) << testing::PrintToString(files);
    for (const std::string& name : files) {
        SCOPED_TRACE(name);
        const Strings kill = kill_at("result/" + name);
        EXPECT_EQ(begin_alone("result", kill).exit_code, 128 + SIGKILL);
        EXPECT_FALSE(fs::exists(folder_ / "result" / name));
        std::string command = next_command();
        const bool is_scored = command == "hpcai500 score result";
        EXPECT_EQ(is_scored, !name.starts_with("groups/")) << command;
        if (is_scored) {
            EXPECT_EQ(execute("exec " + command, kill).exit_code, 128 + SIGKILL);
            command = next_command();
        }
        const Outcome repaired = execute(command);
        EXPECT_EQ(repaired.exit_code, 0) << command << "\n" << repaired.error;
        expect_verified("result");
        for (const std::string& file : late_files("result")) {
            EXPECT_FALSE(file.ends_with(".tmp")) << file;
        }
        fs::remove_all(folder_ / "result");
    }
}

TEST_F(FinishedRun, HasItsSummaryAgainByReport) {
    ASSERT_EQ(begin_alone("result").exit_code, 0);
    const std::string summary = text_of(folder_ / "result/summary.txt");
    fs::remove(folder_ / "result/summary.txt");
    EXPECT_EQ(next_command(), "hpcai500 report result");
    EXPECT_EQ(execute("hpcai500 report result").exit_code, 0);
    EXPECT_EQ(text_of(folder_ / "result/summary.txt"), summary);
    expect_verified("result");
}

TEST_F(FinishedRun, IsCompleteWhereItsOutputHasNoReader) {
    const Outcome outcome = execute(
        "hpcai500 run --config tiny.yaml --output result --set bagging.M=1 | true; "
        "exit ${PIPESTATUS[0]}");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_TRUE(messages(outcome).empty()) << outcome.error;
    expect_verified("result");
}

}  // namespace
}  // namespace hpcai::end_to_end
