// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <hpcai/storage/sha256.hpp>

#include "resumed_run.hpp"

/// Runs whose groups have trained, and what later programs may do to them.
namespace hpcai::end_to_end {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;
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
    void remove_result() const {
        for (const char* name : {"result.json", "manifest.sha256"}) {
            fs::remove(folder_ / "result" / name);
        }
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

TEST_F(FinishedRun, NamesEveryProgramThatWorkedOnIt) {
    ASSERT_EQ(begin_alone("result").exit_code, 0);
    const Json environment = json_of(folder_ / "result/environment.json");
    const fs::path other = folder_ / "other";
    fs::copy_file(cli::environment("HPCAI500_BINARY"), other);
    std::ofstream(other, std::ios::binary | std::ios::app) << "x";
    remove_result();
    const Outcome end = execute("exec ./other resume result");
    ASSERT_EQ(end.exit_code, 0) << end.error;
    EXPECT_EQ(result("result")["environment"], environment) << "in which the group has trained";
    remove_result();
    ASSERT_EQ(execute("hpcai500 score result").exit_code, 0);
    const Json programs = result("result")["invocations"];
    ASSERT_EQ(programs.size(), 3U);
    EXPECT_EQ(programs[0]["binary_sha256"], environment["binary_sha256"]);
    EXPECT_EQ(programs[0]["command_line"], environment["command_line"]);
    EXPECT_EQ(programs[1]["binary_sha256"], storage::sha256_hex_of_file(other));
    EXPECT_EQ(programs[1]["command_line"], "hpcai500 resume result");
    EXPECT_EQ(programs[2]["binary_sha256"], environment["binary_sha256"]);
    EXPECT_EQ(programs[2]["command_line"], "hpcai500 score result");
    for (const Json& program : programs) {
        EXPECT_EQ(program["host"], result("result")["topology"]["map"][0]["host"]);
    }
    expect_verified("result");
}

TEST_F(FinishedRun, HasTheEnvironmentOfTheProgramThatTrainedItLast) {
    EXPECT_EQ(begin(1, {"bagging.M=1", "run.time_limit_seconds=0.001"}, "result").exit_code, 8);
    const Outcome end = execute("exec hpcai500 resume result --set run.time_limit_seconds=0");
    ASSERT_EQ(end.exit_code, 0) << end.error;
    const Json record = result("result");
    const std::string last = record["environment"]["command_line"];
    EXPECT_EQ(last, "hpcai500 resume result --set run.time_limit_seconds=0");
    ASSERT_EQ(record["invocations"].size(), 2U);
    EXPECT_THAT(record["invocations"][0]["command_line"].get<std::string>(), HasSubstr(" run "));
    EXPECT_EQ(record["invocations"][1]["started_utc"],
              record["work"]["groups"][0]["continuations"][0]["started_utc"]);
    expect_verified("result");
}

}  // namespace
}  // namespace hpcai::end_to_end
