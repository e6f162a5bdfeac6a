// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "equal_weights.hpp"
#include "launch.hpp"
#include "storage/temporary_folder.hpp"

/// Two groups whose models have two stages, one on each rank, compared with two groups of one rank
/// with the same micro-batches.
namespace hpcai::end_to_end {
namespace {

using testing::HasSubstr;

class PipelineRun : public testing::Test {
protected:
    static void SetUpTestSuite() {
        folder_ = new storage::TemporaryFolder();
        make_pictures(folder_->path());
        write(*folder_ / "tiny.yaml", kConfig);
        run(4, {"bagging.P_degree=2", "parallel.mode=pipeline"}, "staged");
        run(2, {}, "alone");
        const std::string start = "training.initial_weights=alone/groups/0/weights.safetensors";
        const std::string span = "training.batch_norm_samples=4";  // two micro-batches of two ranks
        run(4,
            {"bagging.M=1", "bagging.P_degree=4", "parallel.mode=pipeline",
             "parallel.pipeline_degree=2", "bagging.sampler=poisson", start, span},
            "both");
        run(2, {"bagging.M=1", "bagging.P_degree=2", "bagging.sampler=poisson", start, span},
            "shared");
    }
    static void TearDownTestSuite() { delete folder_; }

    static void run(int ranks, std::vector<std::string> changes, const std::string& output) {
        changes.insert(changes.end(), {"parallel.micro_batches=2", "training.learning_rate=0.001"});
        const Outcome outcome = run_ranks(folder_->path(), ranks, changes, output);
        ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    }
    static fs::path result(const std::string& name) { return *folder_ / name; }

    static storage::TemporaryFolder* folder_;
};

storage::TemporaryFolder* PipelineRun::folder_ = nullptr;

/// Texts of a run with stages and of a run without stages.
struct StagedPair {
    std::string staged, whole;
    int groups;
};
const std::vector<StagedPair> kStagedPairs{{"staged", "alone", 2}, {"both", "shared", 1}};

TEST_F(PipelineRun, LeavesTheWeightsOfRanksWithWholeModelsUpToRounding) {
    for (const StagedPair& pair : kStagedPairs) {
        for (int group = 0; group < pair.groups; ++group) {
            const std::string file = fmt::format("groups/{}/weights.safetensors", group);
            expect_equal_weights(result(pair.staged) / file, result(pair.whole) / file);
        }
    }
}

TEST_F(PipelineRun, ExportsTheFileThatTheGroupStored) {
    const Outcome exported = cli::run_in(
        folder_->path(), {"export", "staged", "--group", "0", "--output", "exported.safetensors"});
    ASSERT_EQ(exported.exit_code, 0) << exported.error;
    EXPECT_EQ(text_of(result("exported.safetensors")),
              text_of(result("staged/groups/0/weights.safetensors")));
}

TEST_F(PipelineRun, PredictsWhatRanksWithWholeModelsPredict) {
    for (const StagedPair& pair : kStagedPairs) {
        const auto staged = storage::read_npy(result(pair.staged) / "evaluation/ensemble.npy");
        const auto whole = storage::read_npy(result(pair.whole) / "evaluation/ensemble.npy");
        ASSERT_EQ(staged.shape(), whole.shape());
        for (std::size_t i = 0; i < whole.as<float>().size(); ++i) {
            EXPECT_NEAR(staged.as<float>()[i], whole.as<float>()[i], 1e-3) << i;
        }
    }
}

TEST_F(PipelineRun, ScoresTheSamplesThatABootstrapOmitted) {
    const nlohmann::json staged = json_of(result("both/result.json"))["quality"];
    const nlohmann::json whole = json_of(result("shared/result.json"))["quality"];
    EXPECT_GT(staged["out_of_bag_samples"], 0);
    EXPECT_EQ(staged["out_of_bag_samples"], whole["out_of_bag_samples"]);
    EXPECT_NEAR(staged["out_of_bag"].get<double>(), whole["out_of_bag"].get<double>(),
                0.12);  // one of about nine
}

TEST_F(PipelineRun, AuditsTheRanksOfEachStageAndCountsTheirSums) {
    const nlohmann::json both = json_of(result("both/result.json"));
    EXPECT_GT(both["work"]["groups"][0]["audit"]["passed"], 0);
    const double gradients = both["communication"]["gradient_bytes"];
    // The larger of two stages; each of its two ranks sends as many bytes as the stage has.
    const double all = json_of(result("shared/result.json"))["communication"]["gradient_bytes"];
    EXPECT_GT(gradients, all / 2);
    EXPECT_LT(gradients, all);
    const double statistics = both["communication"]["statistics_bytes_per_step"];
    const double sent = both["communication"]["sent_bytes_per_step"];
    EXPECT_GT(sent, gradients);
    EXPECT_LT(sent, gradients + statistics + 4096);
    EXPECT_EQ(both["communication"]["backend"], "mpi");
    const nlohmann::json shared = json_of(result("shared/result.json"))["communication"];
    EXPECT_EQ(shared["statistics_sums_per_step"], 2 * 2 * 53);  // directions, micro-batches
    EXPECT_EQ(both["communication"]["statistics_ranks"], 2);
    EXPECT_LT(both["communication"]["statistics_sums_per_step"], 2 * 2 * 53);
    EXPECT_GE(both["communication"]["statistics_sums_per_step"], 2 * 53);
    const nlohmann::json staged = json_of(result("staged/result.json"));
    EXPECT_EQ(staged["work"]["groups"][0]["audit"]["passed"], 0);
    EXPECT_EQ(staged["communication"]["backend"], "none");
    EXPECT_EQ(staged["communication"]["gradient_bytes"], 0);
    EXPECT_EQ(staged["communication"]["buckets"], 0);
    EXPECT_EQ(staged["communication"]["torus_columns_reason"], "no all-reduce");
}

TEST_F(PipelineRun, RecordsHowItWasCut) {
    const nlohmann::json staged = json_of(result("staged/result.json"));
    const nlohmann::json parallel = staged["parallel"];
    EXPECT_EQ(parallel["mode"], "pipeline");
    EXPECT_EQ(parallel["data_degree"], 1);
    EXPECT_EQ(parallel["pipeline_degree"], 2);
    EXPECT_EQ(parallel["micro_batches"], 2);
    EXPECT_EQ(parallel["schedule"], "1f1b");
    EXPECT_NEAR(parallel["bubble_fraction"].get<double>(), 1.0 / 3, 1e-6);
    EXPECT_GT(parallel["message_bytes_per_step"], 0);
    EXPECT_GT(parallel["message_wait_seconds"], 0);
    EXPECT_EQ(staged["work"]["samples_trained"],
              json_of(result("alone/result.json"))["work"]["samples_trained"]);
    const std::string summary = text_of(result("staged/summary.txt"));
    EXPECT_THAT(summary, HasSubstr("2 stages x 1 rank, 2 micro-batches, 1f1b, bubble 0.333\n"
                                   "pipeline messages   : "));
    // Values that were auto are reported with their effective values.
    EXPECT_THAT(summary, HasSubstr("parallel.mode            : pipeline"));
    EXPECT_THAT(summary, HasSubstr("parallel.pipeline_degree : 2"));
    EXPECT_THAT(summary, HasSubstr("parallel.micro_batches   : 2"));
    EXPECT_THAT(summary, HasSubstr("communication.backend    : auto"));
    const nlohmann::json alone = json_of(result("alone/result.json"))["parallel"];
    EXPECT_EQ(alone["mode"], "data");
    EXPECT_EQ(alone["micro_batches"], 2);
    EXPECT_TRUE(alone["bubble_fraction"].is_null());
}

TEST_F(PipelineRun, EndsAGroupWhoseFirstStageMeetsABadPicture) {
    const fs::path broken = *folder_ / "broken";
    fs::copy(*folder_ / "set", broken, fs::copy_options::recursive);
    for (const auto& entry : fs::recursive_directory_iterator(broken / "train")) {
        if (!entry.is_directory()) write(entry.path(), "no image");
    }
    const Outcome outcome = run_ranks(
        folder_->path(), 2,
        {"bagging.M=1", "bagging.P_degree=2", "parallel.mode=pipeline", "data.path=broken/train"},
        "failed");
    EXPECT_EQ(outcome.exit_code, static_cast<int>(ExitCode::data)) << outcome.error;
    EXPECT_THAT(outcome.out, HasSubstr("group 0: "));
    EXPECT_THAT(outcome.out, HasSubstr("on_bad_sample"));
}

}  // namespace
}  // namespace hpcai::end_to_end
