// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include <gmock/gmock.h>

#include <hpcai/storage/safetensors.hpp>

#include "launch.hpp"
#include "storage/temporary_folder.hpp"

/// Two groups whose models are in two stages, one on each rank, beside two groups of one rank with
/// the same micro-batches.
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

std::vector<float> numbers(const storage::StoredTensor& tensor) {
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
}

TEST_F(PipelineRun, LeavesTheWeightsOfRanksAloneUpToRounding) {
    for (const std::string group : {"0", "1"}) {
        const auto staged =
            storage::read_safetensors(result("staged/groups/" + group + "/weights.safetensors"));
        const auto alone =
            storage::read_safetensors(result("alone/groups/" + group + "/weights.safetensors"));
        ASSERT_EQ(staged.tensors().size(), alone.tensors().size());
        for (const storage::StoredTensor& tensor : alone.tensors()) {
            const storage::StoredTensor* got = staged.find(tensor.name);
            ASSERT_NE(got, nullptr) << tensor.name;
            ASSERT_EQ(got->shape, tensor.shape) << tensor.name;
            if (tensor.type != storage::ElementType::f32) {
                EXPECT_TRUE(std::ranges::equal(got->bytes, tensor.bytes)) << tensor.name;
                continue;
            }
            const std::vector<float> want = numbers(tensor), have = numbers(*got);
            double largest = 0, difference = 0;
            for (std::size_t i = 0; i < want.size(); ++i) {
                largest = std::max<double>(largest, std::abs(want[i]));
                difference = std::max<double>(difference, std::abs(have[i] - want[i]));
            }
            EXPECT_LE(difference, 1e-4 * largest + 1e-6) << tensor.name;  // fp32, three steps
        }
    }
}

TEST_F(PipelineRun, PredictsWhatRanksAlonePredict) {
    const auto staged = storage::read_npy(result("staged/evaluation/ensemble.npy"));
    const auto alone = storage::read_npy(result("alone/evaluation/ensemble.npy"));
    ASSERT_EQ(staged.shape(), alone.shape());
    for (std::size_t i = 0; i < alone.as<float>().size(); ++i) {
        EXPECT_NEAR(staged.as<float>()[i], alone.as<float>()[i], 1e-3) << i;
    }
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
    EXPECT_THAT(text_of(result("staged/summary.txt")),
                HasSubstr("2 stages x 1 ranks, 2 micro-batches, 1f1b, bubble 0.333"));
    const nlohmann::json alone = json_of(result("alone/result.json"))["parallel"];
    EXPECT_EQ(alone["mode"], "data");
    EXPECT_EQ(alone["micro_batches"], 2);
    EXPECT_TRUE(alone["bubble_fraction"].is_null());
}

TEST_F(PipelineRun, EndsAGroupWhoseFirstStageMeetsABadPicture) {
    const fs::path broken = *folder_ / "broken";
    fs::copy(*folder_ / "set", broken, fs::copy_options::recursive);
    for (const auto& entry : fs::recursive_directory_iterator(broken / "train")) {
        if (!entry.is_directory()) write(entry.path(), "no picture");
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
