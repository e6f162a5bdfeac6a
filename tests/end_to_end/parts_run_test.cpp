// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "equal_weights.hpp"
#include "launch.hpp"
#include "storage/temporary_folder.hpp"

/// Groups with two shards of each layer, with stages or replicas, compared with groups of whole
/// models with the same micro-batches or statistics.
namespace hpcai::end_to_end {
namespace {

using testing::HasSubstr;

class PartsRun : public testing::Test {
protected:
    static void SetUpTestSuite() {
        folder_ = new storage::TemporaryFolder();
        make_pictures(folder_->path());
        write(*folder_ / "tiny.yaml", kConfig);
        const std::vector<std::string> mixed{"bagging.M=1", "bagging.P_degree=4",
                                             "parallel.mode=mixed", "parallel.model_degree=2"};
        run(4, {"bagging.M=2", "bagging.P_degree=2", "parallel.mode=model", kMicroBatches},
            "parts");
        run(4, with(mixed, {"parallel.pipeline_degree=2", kMicroBatches}), "staged");
        run(2, {"bagging.M=2", kMicroBatches}, "alone");
        // With more micro-batches, the last layers would normalize two numbers each.
        run(4, with(mixed, {"parallel.data_degree=2"}), "both");
        run(2, {"bagging.M=1", "bagging.P_degree=2"}, "shared");
        run(4, with(mixed, {"parallel.data_degree=2", "training.batch_norm_samples=8"}), "spanned");
        run(1, {"bagging.M=1"}, "one");
    }
    static void TearDownTestSuite() { delete folder_; }

    static constexpr const char* kMicroBatches = "parallel.micro_batches=2";

    static std::vector<std::string> with(std::vector<std::string> changes,
                                         const std::vector<std::string>& more) {
        changes.insert(changes.end(), more.begin(), more.end());
        return changes;
    }
    static void run(int ranks, const std::vector<std::string>& changes, const std::string& output) {
        const Outcome outcome = run_ranks(folder_->path(), ranks,
                                          with(changes, {"training.learning_rate=0.001"}), output);
        ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    }
    static fs::path result(const std::string& name) { return *folder_ / name; }

    static storage::TemporaryFolder* folder_;
};

storage::TemporaryFolder* PartsRun::folder_ = nullptr;

/// A group of a run with shards, and a group of a run without shards.
struct Pair {
    std::string split, whole;
    int group;
};
const std::vector<Pair> kPairs{{"parts", "alone", 0},
                               {"parts", "alone", 1},
                               {"staged", "alone", 0},
                               {"both", "shared", 0},
                               {"spanned", "one", 0}};

TEST_F(PartsRun, LeavesTheWeightsOfRanksWithWholeModelsUpToRounding) {
    for (const Pair& pair : kPairs) {
        SCOPED_TRACE(pair.split);
        const std::string file = fmt::format("groups/{}/weights.safetensors", pair.group);
        expect_equal_weights(result(pair.split) / file, result(pair.whole) / file);
    }
}

TEST_F(PartsRun, RecordsItsDegreesAndTheBytesBetweenParts) {
    const nlohmann::json staged = json_of(result("staged/result.json"));
    const nlohmann::json parallel = staged["parallel"];
    EXPECT_EQ(parallel["mode"], "mixed");
    EXPECT_EQ(parallel["data_degree"], 1);
    EXPECT_EQ(staged["communication"]["bandwidth_bytes_per_second_reason"],
              "there is one replica only: no all-reduce");
    EXPECT_EQ(parallel["pipeline_degree"], 2);
    EXPECT_EQ(parallel["model_degree"], 2);
    EXPECT_GT(parallel["shard_bytes_per_step"], 0);
    EXPECT_GT(parallel["shard_wait_seconds"], 0);
    EXPECT_GT(parallel["message_bytes_per_step"], 0);
    EXPECT_THAT(text_of(result("staged/summary.txt")), HasSubstr("2 stages x 2 ranks"));
    EXPECT_THAT(text_of(result("staged/summary.txt")), HasSubstr("2 shards per stage and replica"));
    const nlohmann::json parts = json_of(result("parts/result.json"))["parallel"];
    EXPECT_EQ(parts["mode"], "model");
    EXPECT_EQ(parts["message_bytes_per_step"], 0);
    // Both stages together are the whole model.
    EXPECT_GT(parts["shard_bytes_per_step"], parallel["shard_bytes_per_step"]);
    EXPECT_TRUE(json_of(result("alone/result.json"))["parallel"]["shard_wait_seconds"].is_null());
}

TEST_F(PartsRun, CountsEachLossOnce) {
    const auto loss = [&](const std::string& run, int group) {
        return json_of(result(run + "/result.json"))["work"]["groups"][group]["final_training_loss"]
            .get<double>();
    };
    for (const Pair& pair : kPairs) {
        EXPECT_NEAR(loss(pair.split, pair.group), loss(pair.whole, pair.group), 1e-4) << pair.split;
    }
}

TEST_F(PartsRun, HasTheSameBitsWithOtherThreadsIfRequested) {
    const std::vector<std::string> changes{"bagging.M=1",
                                           "bagging.P_degree=2",
                                           "parallel.mode=model",
                                           "run.deterministic=true",
                                           "training.optimizer=lars",
                                           "training.nesterov=false"};
    run(2, changes, "one_thread");
    run(2, with(changes, {"device.threads=2"}), "two_threads");
    const std::string file = "groups/0/weights.safetensors";
    EXPECT_EQ(text_of(result("one_thread/" + file)), text_of(result("two_threads/" + file)));
}

TEST_F(PartsRun, AuditsTheReplicasOfEachPart) {
    const auto audits = [&](const std::string& run) {
        return json_of(result(run + "/result.json"))["work"]["groups"][0]["audit"]["passed"]
            .get<int>();
    };
    EXPECT_GT(audits("both"), 0);
    EXPECT_EQ(audits("staged"), 0);
}

}  // namespace
}  // namespace hpcai::end_to_end
