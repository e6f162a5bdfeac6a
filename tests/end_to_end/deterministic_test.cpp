// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

/// run.deterministic: the same bits for all settings that do not change training.
namespace hpcai::end_to_end {
namespace {

using Json = nlohmann::json;

class DeterministicRun : public testing::Test {
protected:
    void SetUp() override {
        make_pictures(folder_.path());
        write(folder_ / "tiny.yaml", kResNet50Config);
    }

    /// The record of a run with `changes`, and the predictions of group 0.
    struct Result {
        Json record;
        std::string predictions;
        Json digest() const { return record["training_digest"][0]; }
    };
    Result run_with(int ranks, std::vector<std::string> changes) {
        changes.insert(changes.end(), {"bagging.sampler=poisson", "run.deterministic=true"});
        const std::string output = fmt::format("result{}", runs_++);
        const Outcome outcome = run_ranks(folder_.path(), ranks, changes, output);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
        return {json_of(folder_ / (output + "/result.json")),
                text_of(folder_ / (output + "/groups/0/predictions.npy"))};
    }

    storage::TemporaryFolder folder_;
    int runs_ = 0;
};

TEST_F(DeterministicRun, HasTheBitsItsRecordPromisesForAllNumbersOfThreadsGroupsAndReaders) {
    const Result first =
        run_with(4, {"bagging.P_degree=2", "device.threads=1", "data.decoded_cache_mib=1"});
    const std::vector<std::vector<std::string>> others{
        {"device.threads=2", "data.decode_threads=3", "data.prefetch_batches=1",
         "data.decoded_cache_mib=2"},
        {"device.threads=3", "data.decoded_cache_mib=8", "run.audit_steps=1"},
    };
    for (std::vector<std::string> changes : others) {
        changes.insert(changes.end(), {"bagging.M=1", "bagging.P_degree=2"});
        const Result other = run_with(2, changes);
        EXPECT_EQ(other.digest(), first.digest()) << changes[0];
        EXPECT_TRUE(other.predictions == first.predictions) << changes[0];
    }
    EXPECT_NE(first.record["training_digest"][1], first.digest());

    const Json promised = first.record["determinism"];
    EXPECT_EQ(promised["requested"], true);
    EXPECT_EQ(promised["guarantee"],
              "a group's model and predictions have the same bits in every run under the "
              "conditions; device.threads, bagging.M and the threads that read data may differ");
    const std::string conditions = promised["conditions"];
    EXPECT_TRUE(conditions.starts_with("oneDNN ")) << conditions;
    EXPECT_NE(conditions.find("MPI"), std::string::npos) << conditions;
}

TEST_F(DeterministicRun, HasTheSameBitsInEveryRunInThePrecisionOfTheDevice) {
    const std::vector<std::string> alone{"bagging.M=1", "training.precision=auto"};
    std::vector<Result> results;
    for (const char* threads : {"1", "3", "3"}) {
        std::vector<std::string> changes = alone;
        changes.push_back(std::string("device.threads=") + threads);
        results.push_back(run_with(1, changes));
    }
    EXPECT_EQ(results[2].digest(), results[1].digest()) << "repeated";
    EXPECT_EQ(results[1].digest(), results[0].digest()) << "with another number of threads";
    EXPECT_TRUE(results[1].predictions == results[0].predictions);
}

}  // namespace
}  // namespace hpcai::end_to_end
