// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gmock/gmock.h>

#include <hpcai/report/csv.hpp>
#include <hpcai/storage/npy.hpp>

#include "result_edits.hpp"

/// `hpcai500 verify --data`: forged results whose files agree with each other.
namespace hpcai::end_to_end {
namespace {

using testing::HasSubstr;

class VerifiedData : public testing::Test {
protected:
    static void SetUpTestSuite() {
        folder_ = new storage::TemporaryFolder();
        make_pictures(folder_->path());
        write(*folder_ / "tiny.yaml", kConfig);
        const Outcome outcome = run_ranks(folder_->path(), 2, {});
        ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    }
    static void TearDownTestSuite() { delete folder_; }

    static Outcome verify(const fs::path& result, std::vector<std::string> options) {
        options.insert(options.begin(), {"verify", result});
        return cli::run_in(folder_->path(), options);
    }

    /// Expects that a result is rejected only with the data, by findings that begin with `lines`.
    static void expect_rejected(const fs::path& result, const std::vector<std::string>& lines) {
        const Outcome without = verify(result, {});
        EXPECT_EQ(without.exit_code, 0) << without.out;
        const Outcome with = verify(result, {"--data", "set"});
        EXPECT_EQ(with.exit_code, 10) << with.error;
        for (const std::string& line : lines) EXPECT_THAT("\n" + with.out, HasSubstr("\n" + line));
    }

    static storage::TemporaryFolder* folder_;
};

storage::TemporaryFolder* VerifiedData::folder_ = nullptr;

TEST_F(VerifiedData, AreThoseOfAnUnchangedResultInAnotherFolder) {
    const storage::TemporaryFolder elsewhere;
    fs::copy(*folder_ / "set", elsewhere / "moved", fs::copy_options::recursive);
    const Outcome outcome = verify(*folder_ / "result", {"--data", elsewhere / "moved"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.error;
    EXPECT_EQ(outcome.out,
              "agree: 24 training and 12 test samples (workload.samples_sha256)\n"
              "agree: labels of the test samples\n"
              "agree: predictions and quality of each trained model\n" +
                  last_line(text_of(*folder_ / "result/summary.txt")) + "\n");
    const Outcome parent = verify(*folder_ / "result", {"--data", "."});
    EXPECT_EQ(parent.out, outcome.out) << "the folder of the recorded folder `set`" << parent.error;
    const Outcome nowhere = verify(*folder_ / "result", {"--data", "nowhere"});
    EXPECT_EQ(nowhere.exit_code, 4);
    EXPECT_THAT(nowhere.error,
                HasSubstr("verify: --data: expected 'nowhere/train' or 'nowhere/set/train', "
                          "because the run read 'set/train'; found none"));
}

TEST_F(VerifiedData, RejectSwappedWeights) {
    const ResultCopy copy(*folder_ / "result");
    const std::string files[]{"groups/0/weights.safetensors", "groups/1/weights.safetensors"};
    const std::string first = copy.text(files[0]), second = copy.text(files[1]);
    copy.put(files[0], second);
    copy.put(files[1], first);
    const auto digest = [&](const char* group) {
        return json_of(copy.path() / group)["training_digest"];
    };
    const auto one = digest("groups/0/record.json"), other = digest("groups/1/record.json");
    copy.set("groups/0/record.json", "/training_digest", other);
    copy.set("groups/1/record.json", "/training_digest", one);
    score_again(folder_->path(), copy);
    expect_rejected(copy.path(), {"groups/0/predictions.npy: probability of class ",
                                  "groups/1/predictions.npy: probability of class "});
}

TEST_F(VerifiedData, RejectPredictionsMadeFromTheLabels) {
    const ResultCopy copy(*folder_ / "result");
    const storage::NpyArray labels = storage::read_npy(copy.path() / "evaluation/labels.npy");
    std::vector<float> answers;
    for (const std::int32_t label : labels.as<std::int32_t>()) {
        for (int category = 0; category < 4; ++category)
            answers.push_back(category == label ? 0.97F : 0.01F);
    }
    const fs::path file = copy.path() / "groups/1/predictions.npy";
    storage::write_npy(file, std::span<const float>(answers), {labels.shape()[0], 4});
    const std::string record = "groups/1/record.json";
    copy.set(record, "/record/predictions_sha256", storage::sha256_hex_of_file(file));
    copy.set(record, "/quality", 1.0);
    copy.set(record, "/quality_top_5", 1.0);
    score_again(folder_->path(), copy);
    EXPECT_EQ(json_of(copy.path() / "result.json")["quality"]["members"][1], 1.0);
    expect_rejected(copy.path(), {"groups/1/predictions.npy: probability of class ",
                                  "result.json: quality.members[1] is 1"});
}

TEST_F(VerifiedData, RejectAResultWithoutSomeTestSamples) {
    const storage::TemporaryFolder other;
    make_pictures(other.path());
    write(other / "tiny.yaml", kConfig);
    for (const auto& category : fs::directory_iterator(other / "set/val"))
        fs::remove(fs::directory_iterator(category)->path());
    const Outcome outcome = run_ranks(other.path(), 2, {});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    expect_rejected(other / "result", {"result.json: workload.samples_sha256 is ",
                                       "result.json: workload.validation_samples is 8"});
}

TEST_F(VerifiedData, RejectOtherLabels) {
    const storage::TemporaryFolder other;
    make_pictures(other.path());
    write(other / "tiny.yaml", kConfig);
    std::vector<fs::path> categories{fs::directory_iterator(other / "set/val"), {}};
    std::ranges::sort(categories);
    fs::rename(categories[0], other / "first");
    fs::rename(categories[1], categories[0]);
    fs::rename(other / "first", categories[1]);
    fs::rename(fs::directory_iterator(categories[0])->path(), categories[1] / "moved.jpg");
    const Outcome outcome = run_ranks(other.path(), 2, {});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    expect_rejected(other / "result",
                    {"result.json: workload.samples_sha256 is ", "evaluation/samples.txt: line ",
                     "evaluation/labels.npy: label 2 is 1"});
}

TEST_F(VerifiedData, RejectALossThatTheFirstStepsDoNotHave) {
    const ResultCopy copy(*folder_ / "result");
    EXPECT_EQ(verify(copy.path(), {"--data", "set", "--replay", "30"}).exit_code, 0);
    const std::string file = "groups/1/steps.csv";
    std::vector<StepRecord> steps = report::steps_from_csv(copy.text(file), file);
    steps[2].loss *= 0.99;
    copy.put(file, report::steps_to_csv(steps));
    score_again(folder_->path(), copy);
    EXPECT_THAT(verify(copy.path(), {"--data", "set", "--replay", "2"}).out,
                HasSubstr("agree: losses of the first 2 steps of each trained model\n"));
    const Outcome outcome = verify(copy.path(), {"--data", "set", "--replay", "3"});
    EXPECT_EQ(outcome.exit_code, 10) << outcome.error;
    EXPECT_THAT(outcome.out, testing::StartsWith("groups/1/steps.csv: loss of step 2 is "));
}

TEST_F(VerifiedData, HaveTheLossesOfAGroupOfSeveralRanks) {
    const Outcome run = run_ranks(
        folder_->path(), 2,
        {"bagging.M=1", "bagging.P_degree=2", "run.loss_steps=2", "workload.epochs=2",
         "run.keep_checkpoints=1", "training.batch_norm_samples=8", "communication.precision=bf16"},
        "pair");
    ASSERT_EQ(run.exit_code, 0) << run.error;
    const ResultCopy copy(*folder_ / "pair");
    const Outcome outcome = verify(copy.path(), {"--data", "set", "--replay", "3"});
    EXPECT_THAT(outcome.out, HasSubstr("agree: losses of the first 3 steps after the checkpoint of "
                                       "epoch 1 of each trained model\n"));
    const std::string file = "groups/0/steps.csv";
    std::vector<StepRecord> steps = report::steps_from_csv(copy.text(file), file);
    ASSERT_TRUE(std::isnan(steps[0].loss));
    steps[1].loss = PhaseSeconds::kUnknown;
    copy.put(file, report::steps_to_csv(steps));
    copy.set("groups/0/checkpoints/step-000000000003/rank-1.done", "/program", 1);
    score_again(folder_->path(), copy);
    const Outcome edited = verify(copy.path(), {"--data", "set", "--replay", "3"});
    EXPECT_THAT(edited.out, testing::StartsWith("groups/0/steps.csv: loss of step 1 is nan"));
    EXPECT_THAT(edited.out, HasSubstr("step-000000000003': its files are from different launches"));
}

TEST_F(VerifiedData, RepeatNoStepsOfAPipeline) {
    const Outcome run = run_ranks(
        folder_->path(), 2,
        {"bagging.M=1", "bagging.P_degree=2", "parallel.mode=pipeline", "parallel.micro_batches=2"},
        "stages");
    ASSERT_EQ(run.exit_code, 0) << run.error;
    EXPECT_EQ(verify("stages", {"--data", "set"}).exit_code, 0);
    const Outcome outcome = verify("stages", {"--data", "set", "--replay", "3"});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.error, HasSubstr("--replay: expected a run with parallel.mode data and "
                                         "parallel.micro_batches 1, got pipeline and 2"));
    EXPECT_THAT(verify("result", {"--replay", "3"}).error, HasSubstr("name their folder with"));
}

TEST_F(VerifiedData, NeedTheWeights) {
    const Outcome run = run_ranks(folder_->path(), 2, {"run.keep_weights=false"}, "light");
    ASSERT_EQ(run.exit_code, 0) << run.error;
    const Outcome outcome = verify("light", {"--data", "set"});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.error, HasSubstr("--data needs the weights of the run, but "
                                         "run.keep_weights is false in light"));
}

/// A run of nine steps that keeps the checkpoint of step 3, after the first of three epochs.
class KeptCheckpoints : public VerifiedData {
protected:
    static void SetUpTestSuite() {
        VerifiedData::SetUpTestSuite();
        const Outcome run = run_ranks(
            folder_->path(), 2,
            {"workload.epochs=3", "run.keep_checkpoints=1", "run.checkpoint_steps=1"}, "kept");
        ASSERT_EQ(run.exit_code, 0) << run.error;
    }
    static Outcome replay(const ResultCopy& copy, const std::string& steps) {
        return verify(copy.path(), {"--data", "set", "--replay", steps});
    }
    static constexpr const char* kFile =
        "groups/0/checkpoints/step-000000000003/rank-0.safetensors";
};

TEST_F(KeptCheckpoints, GiveTheLossesOfTheStepsAfterThem) {
    const ResultCopy copy(*folder_ / "kept");
    EXPECT_FALSE(fs::exists(copy.path() / "checkpoints"));
    EXPECT_FALSE(fs::exists(copy.path() / "groups/0/checkpoints/step-000000000002"));
    EXPECT_THAT(copy.text("manifest.sha256"), HasSubstr(kFile));
    expect_verified(copy.path());
    const Outcome outcome = replay(copy, "4");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_THAT(outcome.out,
                HasSubstr("agree: losses of the first 4 steps of each trained model\n"
                          "agree: losses of the first 4 steps after the checkpoint of epoch 1 of "
                          "each trained model\n"));
}

TEST_F(KeptCheckpoints, RejectALaterLossThatDoesNotFollow) {
    const ResultCopy copy(*folder_ / "kept");
    const std::string file = "groups/1/steps.csv";
    std::vector<StepRecord> steps = report::steps_from_csv(copy.text(file), file);
    steps[4].loss *= 0.98;
    copy.put(file, report::steps_to_csv(steps));
    score_again(folder_->path(), copy);
    EXPECT_EQ(replay(copy, "1").exit_code, 0) << "steps 0 and 3";
    const Outcome outcome = replay(copy, "2");
    EXPECT_EQ(outcome.exit_code, 10) << outcome.error;
    EXPECT_THAT(outcome.out, testing::StartsWith("groups/1/steps.csv: loss of step 4 is "));
}

TEST_F(KeptCheckpoints, AreRejectedIfEditedOrIncomplete) {
    const ResultCopy copy(*folder_ / "kept");
    copy.flip_bit(kFile, 100);
    EXPECT_THAT(verify(copy.path(), {}).out, HasSubstr(std::string(kFile) + ": has the SHA-256 "));
    score_again(folder_->path(), copy);
    EXPECT_EQ(verify(copy.path(), {}).exit_code, 0);
    const std::string folder = "groups/0/checkpoints/step-000000000003";
    const Outcome edited = replay(copy, "1");
    EXPECT_THAT(edited.out, testing::StartsWith(folder + ": '"));
    EXPECT_THAT(edited.out, HasSubstr("rank-0.safetensors': has the SHA-256 "));
    fs::remove(copy.path() / folder / "rank-0.done");
    score_again(folder_->path(), copy);
    const Outcome partial = replay(copy, "1");
    EXPECT_EQ(partial.exit_code, 10) << partial.error;
    EXPECT_THAT(partial.out, HasSubstr("step-000000000003/rank-0.done'"));
}

TEST_F(KeptCheckpoints, MayBeMissingAfterAFailedWrite) {
    const ResultCopy copy(*folder_ / "kept");
    fs::remove_all(copy.path() / "groups/0/checkpoints");
    score_again(folder_->path(), copy);
    const Outcome outcome = replay(copy, "1");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.error;
    EXPECT_THAT(outcome.out,
                HasSubstr("no checkpoint of epoch 1 of group 0\n"
                          "agree: losses of the first 1 step after the checkpoint of epoch 1 of "
                          "each trained model\n"));
}

}  // namespace
}  // namespace hpcai::end_to_end
