// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "child_process.hpp"

namespace hpcai::cli {
namespace {

namespace fs = std::filesystem;

/// One rank, one base model, a few steps on synthetic data.
std::vector<std::string> smallest_run(const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--config", source("configs/smoke.yaml"),
                                       "--output", "result",
                                       "--set",    "bagging.M=1",
                                       "--set",    "data.synthetic_samples=16",
                                       "--set",    "data.synthetic_validation_samples=8"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

std::vector<std::string> with_set(const std::string& change) {
    return smallest_run({"--set", change});
}

TEST(Run, WithoutItsNameEndsWithAResultThatExportReads) {
    const TemporaryFolder folder;
    const Outcome outcome = run_in(folder.path(), smallest_run({}));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    const auto last_line = outcome.out.rfind("\nRESULT CUSTOM  ");
    ASSERT_NE(last_line, std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.out.find('\n', last_line + 1), outcome.out.size() - 1) << outcome.out;
    const auto result = nlohmann::json::parse(text_of(folder / "result/result.json"));
    EXPECT_EQ(result["topology"]["ranks"], 1);

    const std::vector<std::string> request{"export", "result", "--output", "w.safetensors"};
    std::vector<std::string> first = request;
    first.insert(first.end(), {"--group", "0"});
    const Outcome exported = run_in(folder.path(), first);
    EXPECT_EQ(exported.exit_code, 0) << exported.error;
    EXPECT_EQ(exported.out, "wrote w.safetensors: base model 0\n");
    EXPECT_FALSE(fs::exists(folder / "w.json")) << "synthetic pictures have no preprocessing";
    EXPECT_GT(fs::file_size(folder / "w.safetensors"), std::size_t{90'000'000});

    expect_refused(run_in(folder.path(), first), 2,
                   "export: --output: w.safetensors exists; name another file");
    expect_refused(
        run_in(folder.path(), {"export", "result", "--output", "v.safetensors", "--group", "1"}), 2,
        "--group 1: result/groups/1 holds no weights; groups with weights: [0]");
    expect_refused(run_in(folder.path(), smallest_run({})), 2, "result");  // not empty any more
}

TEST(Run, RejectsWrongConfigurationsAndLeavesNothing) {
    const TemporaryFolder folder;
    const std::vector<std::pair<std::string, int>> wrong{
        {"training.batchsize=8", 2},
        {"training.batch_size=0", 2},
        {"bagging.M=2", 3},
    };
    for (const auto& [change, exit_code] : wrong) {
        std::vector<std::string> arguments{
            "run", "--config", source("configs/smoke.yaml"), "--output", "result", "--set", change};
        const Outcome outcome = run_in(folder.path(), arguments);
        expect_refused(outcome, exit_code, change.substr(0, change.find('.')));
        EXPECT_TRUE(fs::is_empty(folder.path())) << change;
    }
}

TEST(Run, RejectsDataAndOutputThatDoNotServe) {
    const TemporaryFolder folder;
    expect_refused(run_in(folder.path(), smallest_run({"--set", "data.kind=image_folder", "--set",
                                                       "data.path=nowhere", "--set",
                                                       "data.validation_path=nowhere"})),
                   4, "nowhere");
    EXPECT_TRUE(fs::is_empty(folder.path()));
    std::vector<std::string> unwritable = with_set("run.seed=2");
    unwritable[3] = "/proc/none/result";
    expect_refused(run_in(folder.path(), unwritable), 2, "/proc/none/result");
}

TEST(Run, WithoutALauncherUnderSlurmIsRejected) {
    const TemporaryFolder folder;
    const Outcome outcome = run_in(folder.path(), smallest_run({}), {"SLURM_NTASKS=4"});
    EXPECT_EQ(outcome.exit_code, 3) << outcome.error;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.error.find("SLURM_NTASKS=4"), std::string::npos) << outcome.error;
    EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Run, RejectsFaultsThatThisProgramCannotInject) {
    const TemporaryFolder folder;
    expect_refused(run_in(folder.path(), smallest_run({}), {"HPCAI500_INJECT=kill@0:0:0"}), 2,
                   "HPCAI500_INJECT: expected nothing");
    EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Bench, PrintsJsonOnly) {
    const Outcome outcome = run({"bench", "--config", source("configs/smoke.yaml"), "--steps", "1",
                                 "--set", "training.batch_size=2", "--json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    const auto report = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(report["batch_size"], 2);
    EXPECT_GT(report["images_per_second"], 0.0);
}

}  // namespace
}  // namespace hpcai::cli
