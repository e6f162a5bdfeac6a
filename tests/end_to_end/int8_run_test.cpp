// SPDX-License-Identifier: Apache-2.0
#include <hpcai/device/cpu_device.hpp>

#include "launch.hpp"
#include "storage/temporary_folder.hpp"

/// training.precision: int8 on CPUs that support it.
namespace hpcai::end_to_end {
namespace {

class Int8Run : public testing::Test {
protected:
    void SetUp() override {
        if (!device::make_cpu_device({})->has_int8()) {
            GTEST_SKIP() << "this CPU does not multiply int8";
        }
        make_pictures(folder_.path());
        std::string config = kResNet50Config;
        const std::string fp32 = "precision: fp32";
        config.replace(config.find(fp32), fp32.size(), "precision: int8");
        write(folder_ / "tiny.yaml", config);
    }

    struct Result {
        nlohmann::json record;
        std::string predictions;
        nlohmann::json digest() const { return record["training_digest"][0]; }
    };
    /// Returns the result of one group of `ranks` in folder `output`.
    Result run_with(int ranks, std::vector<std::string> changes, const std::string& output) {
        changes.insert(changes.begin(), {"bagging.M=1", "bagging.P_degree=" + std::to_string(ranks),
                                         "run.deterministic=true"});
        const Outcome outcome = run_ranks(folder_.path(), ranks, changes, output);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
        return {json_of(folder_ / (output + "/result.json")),
                text_of(folder_ / (output + "/groups/0/predictions.npy"))};
    }

    storage::TemporaryFolder folder_;
};

TEST_F(Int8Run, HasTheSameBitsInEveryRunAndWithAnyThreads) {
    const Result first = run_with(2, {}, "first");
    EXPECT_EQ(first.record["workload"]["precision"], "int8");
    for (const std::string threads : {"1", "2"}) {
        const Result other = run_with(2, {"device.threads=" + threads}, "threads" + threads);
        EXPECT_EQ(other.digest(), first.digest()) << threads;
        EXPECT_TRUE(other.predictions == first.predictions) << threads;
    }
    EXPECT_NE(run_with(2, {"training.precision=fp32"}, "fp32").digest(), first.digest());
}

TEST_F(Int8Run, HasTheSameBitsInPartsWithAnyThreads) {
    const auto run_in_parts = [&](const std::string& precision, const std::string& threads) {
        return run_with(
            2,
            {"parallel.mode=model", "training.precision=" + precision, "device.threads=" + threads},
            precision + threads);
    };
    const Result one = run_in_parts("int8", "1"), two = run_in_parts("int8", "2");
    EXPECT_EQ(one.record["workload"]["precision"], "int8");
    EXPECT_EQ(one.record["parallel"]["model_degree"], 2);
    EXPECT_EQ(one.digest(), two.digest());
    EXPECT_TRUE(one.predictions == two.predictions);
    EXPECT_NE(run_in_parts("fp32", "1").digest(), one.digest());
}

TEST_F(Int8Run, EndsEquallyInAllSchedulesOfItsMicroBatches) {
    const auto digest_of = [&](const std::string& schedule) {
        return run_with(2,
                        {"parallel.mode=pipeline", "parallel.micro_batches=4",
                         "parallel.schedule=" + schedule},
                        schedule)
            .digest();
    };
    EXPECT_EQ(digest_of("gpipe"), digest_of("1f1b"));
}

// With a rate of 0, weights and running statistics stay unchanged.
TEST_F(Int8Run, PredictsInFp32) {
    const Result trained = run_with(1, {}, "trained");
    const Result fp32 = run_with(1,
                                 {"training.precision=fp32", "training.learning_rate=1e-30",
                                  "training.batch_norm_momentum=1e-30",
                                  "training.initial_weights=trained/groups/0/weights.safetensors"},
                                 "fp32");
    EXPECT_TRUE(fp32.predictions == trained.predictions);
}

}  // namespace
}  // namespace hpcai::end_to_end
