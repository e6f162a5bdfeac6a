// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include <gmock/gmock.h>

#include <hpcai/data/sample_index.hpp>
#include <hpcai/plan/data_sampler.hpp>
#include <hpcai/report/csv.hpp>

#include "result_edits.hpp"

/// Unreadable images during training.
namespace hpcai::end_to_end {
namespace {

constexpr std::uint64_t kSeed = 3;  // of kConfig
constexpr std::uint32_t kBatch = 8;

class BadSample : public testing::Test {
protected:
    void SetUp() override {
        make_pictures(folder_.path());
        write(folder_ / "tiny.yaml", kConfig);
        index_ = data::scan_image_folder(folder_ / "set/train");
    }

    fs::path picture(std::uint32_t sample) const {
        return folder_ / "set/train" / index_.samples[sample].path;
    }
    void cut(std::uint32_t sample) const { fs::resize_file(picture(sample), 300); }

    Outcome run_one_group(const std::string& policy) const {
        return run_ranks(folder_.path(), 1, {"bagging.M=1", "data.on_bad_sample=" + policy});
    }

    storage::TemporaryFolder folder_;
    data::SampleIndex index_;
};

TEST_F(BadSample, ThatIsCutFailsTheRunWithTwoRanksByDefault) {
    cut(5);
    const Outcome outcome = run_ranks(folder_.path(), 2, {"bagging.M=1", "bagging.P_degree=2"});
    EXPECT_EQ(outcome.exit_code, 4) << outcome.error;
    EXPECT_TRUE(last_line(outcome.out).starts_with("RESULT INVALID  ")) << outcome.out;
    const std::string reason = "\nreason: group 0: set/train/" + index_.samples[5].path + ": ";
    EXPECT_NE(outcome.out.find(reason), std::string::npos) << outcome.out;
    const std::string said = "group 0 failed: set/train/" + index_.samples[5].path;
    const std::size_t first = outcome.error.find(said);
    EXPECT_NE(first, std::string::npos) << outcome.error;
    EXPECT_EQ(outcome.error.find(said, first + 1), std::string::npos) << "said once";
    const nlohmann::json verdict = json_of(folder_ / "result/result.json")["verdict"];
    EXPECT_EQ(verdict["exit_code"], 4);
    EXPECT_FALSE(fs::exists(folder_ / "result/groups/0/weights.safetensors"));
    EXPECT_FALSE(fs::exists(folder_ / "result/evaluation/ensemble.npy"));
}

TEST_F(BadSample, LeavesTheStepsBeforeIt) {
    cut(5);
    const Outcome outcome = run_ranks(folder_.path(), 2, {"bagging.M=1", "bagging.P_degree=2"});
    EXPECT_EQ(outcome.exit_code, 4) << outcome.error;
    const fs::path group = folder_ / "result/groups/0";
    const auto steps = report::steps_from_csv(text_of(group / "steps.csv"));
    const nlohmann::json record = json_of(group / "record.json")["record"];
    EXPECT_LT(steps.size(), 3U) << "of three, of which one met the sample";
    EXPECT_EQ(record["iterations"], steps.size());
    EXPECT_EQ(record["samples_trained"], kBatch * steps.size());
    EXPECT_FALSE(fs::exists(group / "ranks.csv"));
}

TEST_F(BadSample, ThatIsNoJpegFailsTheRunByDefault) {
    write(picture(20), "no image at all");
    const Outcome outcome = run_one_group("fail");
    EXPECT_EQ(outcome.exit_code, 4) << outcome.error;
    EXPECT_NE(outcome.out.find(index_.samples[20].path + ": not a JPEG or PNG"), std::string::npos)
        << outcome.out;
}

/// A user must know before a run of several days that the result cannot be ranked.
TEST_F(BadSample, ComesAfterTheRulesThatTheRunWillHaveBroken) {
    cut(5);
    const Outcome outcome = run_ranks(folder_.path(), 1, {"bagging.M=1", "run.level=free"});
    EXPECT_EQ(outcome.exit_code, 4) << outcome.error;
    EXPECT_THAT(outcome.error,
                testing::HasSubstr("the result will be INVALID: rule 1: the number of training "
                                   "samples must be 1281167, is 24\n"));
    EXPECT_THAT(outcome.error, testing::HasSubstr("INVALID: rule 3: workload.epochs must be 90"));
}

TEST_F(BadSample, IsCountedWhenSkippedOrCountedAndNamedInTheLog) {
    cut(5);
    write(picture(20), "no image at all");
    std::vector<std::string> digests;
    for (const char* policy : {"skip", "count"}) {
        const Outcome outcome = run_one_group(policy);
        ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
        const nlohmann::json record = json_of(folder_ / "result/groups/0/record.json");
        EXPECT_EQ(record["bad_samples"], 2) << policy;
        EXPECT_EQ(record["record"]["samples_trained"], 24) << policy;
        const std::string log = text_of(folder_ / "result/groups/0/log.txt");
        for (const std::uint32_t sample : {5U, 20U}) {
            EXPECT_NE(log.find(index_.samples[sample].path), std::string::npos) << log;
        }
        digests.push_back(record["training_digest"]);
        fs::remove_all(folder_ / "result");
    }
    EXPECT_NE(digests[0], digests[1]) << "one trains on other images than the other";
}

TEST_F(BadSample, IsNoImageWithADecoderWarningWhichTheResultCounts) {
    const fs::path warned = cli::source("tests/data/fixtures/warning_version.jpg");
    const data::SampleIndex tests = data::scan_image_folder(folder_ / "set/val");
    for (const fs::path& replaced : {picture(5), picture(6), fs::path(tests.location_of(0))})
        fs::copy_file(warned, replaced, fs::copy_options::overwrite_existing);
    const Outcome outcome = run_one_group("fail");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    const nlohmann::json record = json_of(folder_ / "result/groups/0/record.json");
    EXPECT_EQ(record["bad_samples"], 0);
    EXPECT_EQ(record["decoder_warnings"], 3);
    EXPECT_THAT(text_of(folder_ / "result/summary.txt"),
                testing::ContainsRegex("decoder warnings +: 3\n"));
    expect_verified(folder_ / "result");
    expect_told(folder_ / "result", {"fewer decoder warnings", "groups/0/record.json", "parameters",
                                     [](const ResultCopy& copy) {
                                         copy.set("groups/0/record.json", "/decoder_warnings", 2);
                                     },
                                     "result.json"});
}

/// Returns a sample of group 1 that group 0 does not train on.
std::uint32_t sample_of_second_group_only(std::uint32_t samples) {
    config::BaggingConfig bagging;
    bagging.sampler = config::Sampler::bootstrap;
    const plan::DataSampler sampler(bagging, kSeed, samples);
    const std::vector<std::uint16_t> counts = sampler.counts(0);
    const std::vector<std::uint32_t> order = sampler.epoch_order(1, 0);
    const auto whole_batches =
        order.begin() + static_cast<std::ptrdiff_t>(order.size() / kBatch * kBatch);
    const auto found = std::find_if(order.begin(), whole_batches,
                                    [&](std::uint32_t sample) { return counts[sample] == 0; });
    EXPECT_NE(found, whole_batches);
    return *found;
}

TEST_F(BadSample, OfOneBootstrapLeavesAPartialResultOfTheOtherGroup) {
    const std::uint32_t bad = sample_of_second_group_only(24);
    cut(bad);
    const Outcome outcome =
        run_ranks(folder_.path(), 2, {"bagging.sampler=bootstrap", "bagging.out_of_bag=false"});
    EXPECT_EQ(outcome.exit_code, 7) << outcome.error;
    EXPECT_TRUE(last_line(outcome.out).starts_with("RESULT PARTIAL  ")) << outcome.out;
    const nlohmann::json all = json_of(folder_ / "result/result.json");
    const nlohmann::json verdict = all["verdict"];
    EXPECT_EQ(verdict["status"], "PARTIAL");
    EXPECT_EQ(verdict["exit_code"], 7);
    ASSERT_EQ(verdict["reasons"].size(), 2U);
    EXPECT_EQ(verdict["reasons"][0], "1 of 2 groups finished");
    const std::string why = verdict["reasons"][1];
    EXPECT_TRUE(why.starts_with("group 1: set/train/" + index_.samples[bad].path)) << why;

    EXPECT_TRUE(all["quality"]["members"][1].is_null());
    EXPECT_EQ(all["quality"]["ensemble"], all["quality"]["members"][0]);
    EXPECT_EQ(all["training_digest"][1], "");
    EXPECT_EQ(text_of(folder_ / "result/evaluation/ensemble.npy"),
              text_of(folder_ / "result/groups/0/predictions.npy"));
    EXPECT_FALSE(fs::exists(folder_ / "result/groups/1/weights.safetensors"));
    EXPECT_NE(json_of(folder_ / "result/groups/1/record.json")["record"]["failure"], "");
    EXPECT_NE(text_of(folder_ / "result/report.html").find("1 of 2 groups failed"),
              std::string::npos);
    EXPECT_NE(text_of(folder_ / "result/mllog/result_1.txt").find(R"("status":"aborted")"),
              std::string::npos);
    const Outcome logs =
        cli::execute_in(folder_ / "result", {"python3", cli::source("scripts/check_mllog.py"),
                                             "mllog/result_0.txt", "mllog/result_1.txt"});
    EXPECT_EQ(logs.exit_code, 0) << logs.out << logs.error;
    const Outcome check =
        cli::execute_in(folder_ / "result", {"sha256sum", "--check", "--quiet", "manifest.sha256"});
    EXPECT_EQ(check.exit_code, 0) << check.out << check.error;
}

}  // namespace
}  // namespace hpcai::end_to_end
