// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include "child_process.hpp"

namespace hpcai::cli {
namespace {

using Words = std::vector<std::string>;

Outcome sbatch(Words options) {
    Words words{"sbatch", "--config", source("configs/smoke.yaml")};
    words.insert(words.end(), options.begin(), options.end());
    return run(words);
}

TEST(Sbatch, PrintsAScriptThatBashReads) {
    const Outcome outcome = sbatch({"--nodes", "1", "--ranks-per-node", "2", "--requeue", "2"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    const TemporaryFolder folder;
    std::ofstream(folder / "job") << outcome.out;
    const Outcome read = execute_in(folder.path(), {"bash", "-n", "job"});
    EXPECT_EQ(read.exit_code, 0) << read.error;
    EXPECT_NE(outcome.out.find("mpirun -np 2 "), std::string::npos) << outcome.out;
}

TEST(Sbatch, WritesTheSameIntoAFile) {
    const TemporaryFolder folder;
    const Words words{"sbatch",  "--config", source("configs/smoke.yaml"),
                      "--nodes", "1",        "--ranks-per-node",
                      "2",       "--output", "a.sbatch"};
    const Outcome outcome = run_in(folder.path(), words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_EQ(outcome.out, "wrote a.sbatch; submit it with\n  sbatch a.sbatch\n");
    EXPECT_NE(text_of(folder / "a.sbatch").find("mpirun -np 2 "), std::string::npos);
    Words blank = words;
    blank.back() = "my job.sbatch";
    EXPECT_TRUE(run_in(folder.path(), blank).out.ends_with("\n  sbatch 'my job.sbatch'\n"));
}

TEST(Sbatch, RefusesRanksThatDoNotFit) {
    expect_refused(sbatch({"--nodes", "3", "--ranks-per-node", "2"}), 3,
                   "bagging.M=2 x bagging.P_degree=1 needs 2 ranks (eq. 5), got 6");
    expect_refused(sbatch({"--nodes", "1", "--ranks-per-node", "2", "--array", "M=1,2,4"}), 3,
                   "bagging.M=4 x bagging.P_degree=1 needs 4 ranks (eq. 5), got 2");
}

TEST(Sbatch, GivesEachCombinationOfAnArrayTheRanksItNeeds) {
    const Outcome outcome = sbatch(
        {"--nodes", "2", "--ranks-per-node", "4", "--array", "M=1,4", "--array", "P_degree=1,2"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    for (const char* line :
         {"#SBATCH --array=0-3\n",
          "    0) ranks=1 task=(--set bagging.M=1 --set bagging.P_degree=1) ;;\n",
          "    3) ranks=8 task=(--set bagging.M=4 --set bagging.P_degree=2) ;;\n"}) {
        EXPECT_NE(outcome.out.find(line), std::string::npos) << line << outcome.out;
    }
}

TEST(Sbatch, RefusesWhatSlurmWouldNotTake) {
    expect_refused(sbatch({"--nodes", "0"}), 2, "sbatch: --nodes: expected an integer");
    expect_refused(sbatch({"--nodes", "1", "--time", "1h"}), 2, "sbatch: --time: expected");
    expect_refused(sbatch({"--nodes", "1", "--time", "2"}), 2, "more than 2 minutes");
    expect_refused(sbatch({"--nodes", "1", "--launcher", "aprun"}), 2, "mpirun or srun");
    expect_refused(sbatch({"--nodes", "1", "--array", "M"}), 2, "sbatch: --array: expected");
    expect_refused(sbatch({"--nodes", "1", "--array", "M=1,,2"}), 2, "is empty");
    expect_refused(sbatch({"--nodes", "2", "--results", "a\nb"}), 2, "control characters");
    expect_refused(sbatch({"--nodes", "1", "--ranks-per-node", "2", "--requeue", "1", "--set",
                           "run.repeat=3"}),
                   2, "sbatch: --requeue: expected 0 with run.repeat 3, got 1");
    expect_refused(run({"sbatch", "--config", source("configs/smoke.yaml")}), 2,
                   "sbatch: --nodes is required");
}

/// "# Made by: hpcai500 sbatch ..." in the second line.
std::string command_of(const std::string& script) {
    std::istringstream lines(script);
    std::string line;
    std::getline(lines, line);
    std::getline(lines, line);
    constexpr std::string_view kStart = "# Made by: hpcai500 ";
    EXPECT_TRUE(line.starts_with(kStart)) << line;
    return line.substr(std::min(line.size(), kStart.size()));
}

TEST(SlurmTemplates, AreWhatTheirCommandPrints) {
    int templates = 0;
    for (const auto& entry : std::filesystem::directory_iterator(source("scripts/slurm"))) {
        if (entry.path().extension() != ".sbatch") continue;
        const std::string script = text_of(entry.path());
        const Outcome outcome =
            execute_in(source(""), {"bash", "-c", "\"$HPCAI500_BINARY\" " + command_of(script)});
        EXPECT_EQ(outcome.out, script) << entry.path() << outcome.error;
        ++templates;
    }
    EXPECT_EQ(templates, 10);
}

}  // namespace
}  // namespace hpcai::cli
