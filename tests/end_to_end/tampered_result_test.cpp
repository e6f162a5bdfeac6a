// SPDX-License-Identifier: Apache-2.0
#include "result_edits.hpp"

/// Results that somebody has changed: `hpcai500 verify` and scripts/verify_result.py agree on each.
namespace hpcai::end_to_end {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kResult = "result.json";

constexpr const char* kWeather = R"(run: {name: tiny, seed: 3}
workload:
  {kind: extreme_weather, model: faster_rcnn_r50_fpn, classes: 4, image_size: 64, image_width: 96,
   channels: 16, target_quality: 0.35, penalty_exponent: 10, epochs: 1}
detector:
  {backbone_width: 8, pyramid_channels: 16, head_features: 32, anchor_samples: 32,
   anchor_sizes: [16, 24, 40, 64, 96], region_samples: 16, training_proposals: 50,
   inference_proposals: 50}
bagging: {M: 2, P_degree: 2, sampler: poisson, aggregation: wbf, out_of_bag: false}
data: {kind: climate_synthetic, synthetic_samples: 16, synthetic_validation_samples: 6}
training: {batch_size: 4, learning_rate: 0.01, schedule: constant, warmup_epochs: 0, precision: fp32}
device: {kind: cpu, threads: 1}
)";

/// The last step's line, cell by cell.
void change_last_step(const ResultCopy& copy, const std::string& file, std::size_t column,
                      const std::string& value) {
    std::string text = copy.text(file);
    std::size_t from = text.rfind('\n', text.size() - 2) + 1;
    for (std::size_t cell = 0; cell < column; ++cell) from = text.find(',', from) + 1;
    copy.put(file, text.replace(from, text.find(',', from) - from, value));
}

std::vector<Edit> edits_of_scores() {
    const auto increased = [](const std::string& name, const std::string& pointer) {
        return Edit{name, kResult,
                    [=](const ResultCopy& copy) { copy.increase(kResult, pointer); }};
    };
    return {
        increased("FLOPS", "/scores/flops"),
        increased("VFLOPS", "/scores/vflops"),
        increased("penalty coefficient", "/scores/penalty_coefficient"),
        increased("quality of the ensemble", "/quality/ensemble"),
        increased("quality of a member", "/quality/members/0"),
        increased("exponent", "/quality/exponent"),
        increased("target", "/quality/target"),
        increased("time of the run", "/time/training_seconds"),
        increased("speed of a group", "/work/groups/1/images_per_second"),
        increased("AP of a category", "/quality/ensemble_ap10"),
        {"quality in a group's record", "groups/1/record.json",
         [](const ResultCopy& copy) { copy.increase("groups/1/record.json", "/quality"); }},
        {"seconds in a group's record", "groups/1/record.json",
         [](const ResultCopy& copy) {
             copy.increase("groups/1/record.json", "/record/training_seconds");
         }},
        {"FLOPs of a sample", kResult,
         [](const ResultCopy& copy) {
             copy.set(kResult, "/flops/training_per_sample", 123'029'665);
         }},
        {"samples of the run", kResult,
         [](const ResultCopy& copy) { copy.set(kResult, "/work/samples_trained", 1000); }},
        {"seed", kResult, [](const ResultCopy& copy) { copy.set(kResult, "/workload/seed", 4); }},
        {"verdict", kResult,
         [](const ResultCopy& copy) {
             copy.set(kResult, "/verdict",
                      Json{{"status", "VALID"},
                           {"reasons", Json::array()},
                           {"exit_code", 0},
                           {"rankable", true}});
         }},
        {"what a rule found", kResult,
         [](const ResultCopy& copy) { copy.set(kResult, "/verdict/rules/0/found", "2"); }},
        {"who hands it in", kResult,
         [](const ResultCopy& copy) {
             copy.set(kResult, "/submission/organization", "somebody else");
         }},
        increased("interval of VFLOPS", "/scores/vflops_interval/high"),
        {"removed reason", kResult,
         [](const ResultCopy& copy) { copy.set(kResult, "/verdict/reasons", Json::array()); }},
        {"digest of a model", kResult,
         [](const ResultCopy& copy) {
             copy.set(kResult, "/training_digest/0", std::string(64, 'a'));
         }},
    };
}

std::vector<Edit> edits_of_steps() {
    const std::string steps = "groups/0/steps.csv";
    return {
        {"time of a step", steps,
         [=](const ResultCopy& copy) { change_last_step(copy, steps, 3, "1000"); }},
        {"samples of a step", steps,
         [=](const ResultCopy& copy) { change_last_step(copy, steps, 2, "5"); }},
        {"removed step", steps,
         [=](const ResultCopy& copy) {
             const std::string text = copy.text(steps);
             copy.put(steps, text.substr(0, text.rfind('\n', text.size() - 2) + 1));
         }},
        {"step in half", steps,
         [=](const ResultCopy& copy) {
             const std::string text = copy.text(steps);
             copy.put(steps, text.substr(0, text.size() - 5));
         }},
    };
}

std::vector<Edit> edits_of_files() {
    return {
        {"prediction of a member", "groups/0/detections.json",
         [](const ResultCopy& copy) {
             copy.change_digit("groups/0/detections.json", "\"score\":0.");
         }},
        {"prediction of the ensemble", "evaluation/ensemble.json",
         [](const ResultCopy& copy) {
             copy.change_digit("evaluation/ensemble.json", "\"score\":0.");
         }},
        {"labelled box", "evaluation/annotations.json",
         [](const ResultCopy& copy) {
             copy.change_digit("evaluation/annotations.json", "\"bbox\":[");
         }},
        {"truncated predictions", "groups/1/detections.json",
         [](const ResultCopy& copy) {
             const std::string text = copy.text("groups/1/detections.json");
             copy.put("groups/1/detections.json", text.substr(0, text.size() / 2));
         }},
        {"removed predictions", "groups/1/detections.json",
         [](const ResultCopy& copy) { fs::remove(copy.path() / "groups/1/detections.json"); }},
        {"bit of the weights", "groups/0/weights.safetensors",
         [](const ResultCopy& copy) { copy.flip_bit("groups/0/weights.safetensors", 1000); }},
        {"removed group", "groups/1/record.json",
         [](const ResultCopy& copy) { fs::remove_all(copy.path() / "groups/1"); }},
        {"swapped groups", "groups/0/record.json",
         [](const ResultCopy& copy) {
             fs::rename(copy.path() / "groups/0", copy.path() / "groups/2");
             fs::rename(copy.path() / "groups/1", copy.path() / "groups/0");
             fs::rename(copy.path() / "groups/2", copy.path() / "groups/1");
         }},
        {"swapped configuration", "config.yaml",
         [](const ResultCopy& copy) {
             std::string text = copy.text("config.yaml");
             const std::string old = "learning_rate: 0.01";
             copy.put("config.yaml", text.replace(text.find(old), old.size(), "learning_rate: 1"));
         }},
        {"another program", "environment.json",
         [](const ResultCopy& copy) {
             copy.set("environment.json", "/binary_sha256", std::string(64, 'b'));
         }},
        {"line of the summary", "summary.txt",
         [](const ResultCopy& copy) { copy.change_digit("summary.txt", "members mean"); }},
        {"RESULT line", "summary.txt",
         [](const ResultCopy& copy) { copy.change_digit("summary.txt", " FLOPS="); }},
        {"line of the manifest", storage::kManifestName,
         [](const ResultCopy& copy) { copy.change_digit(storage::kManifestName, ""); }},
        {"link", "groups/0/link",
         [](const ResultCopy& copy) {
             fs::create_symlink("/etc/hostname", copy.path() / "groups/0/link");
         }},
    };
}

/// These touch nothing that a score or a verdict is made of.
std::vector<Edit> edits_that_only_the_manifest_tells() {
    return {
        {"line of a log", "groups/0/log.txt",
         [](const ResultCopy& copy) {
             copy.put("groups/0/log.txt", copy.text("groups/0/log.txt") + "all was well\n");
         },
         true},
        {"added file", "groups/0/more.txt",
         [](const ResultCopy& copy) { copy.put("groups/0/more.txt", "more"); }, true},
        {"another program everywhere", kResult,
         [](const ResultCopy& copy) {
             copy.set("environment.json", "/binary_sha256", std::string(64, 'b'));
             copy.set(kResult, "/environment/binary_sha256", std::string(64, 'b'));
         },
         true},
        {"seconds of the start-up", kResult,
         [](const ResultCopy& copy) { copy.increase(kResult, "/time/startup_seconds"); }, true},
    };
}

class TamperedWeather : public testing::Test {
protected:
    static void SetUpTestSuite() {
        folder_ = new storage::TemporaryFolder();
        write(*folder_ / "tiny.yaml", kWeather);
        const Outcome outcome = run_ranks(folder_->path(), 4, {});
        ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
        add_missing_steps(result());
    }
    static void TearDownTestSuite() { delete folder_; }

    static fs::path result() { return *folder_ / "result"; }
    static void expect_all_told(const std::vector<Edit>& edits) {
        for (const Edit& edit : edits) expect_told(result(), edit);
    }

    static storage::TemporaryFolder* folder_;
};

storage::TemporaryFolder* TamperedWeather::folder_ = nullptr;

TEST_F(TamperedWeather, VerifiesWhereNothingWasChanged) {
    expect_verified(result());
}

TEST_F(TamperedWeather, IsToldWhereANumberOfTheScoreWasChanged) {
    expect_all_told(edits_of_scores());
}

TEST_F(TamperedWeather, IsToldWhereAStepWasChanged) {
    expect_all_told(edits_of_steps());
}

TEST_F(TamperedWeather, IsToldWhereAFileWasChanged) {
    expect_all_told(edits_of_files());
}

TEST_F(TamperedWeather, IsToldByTheResultLineWhereNothingElseCan) {
    expect_all_told(edits_that_only_the_manifest_tells());
}

class TamperedPictures : public testing::Test {
protected:
    void SetUp() override {
        make_pictures(folder_.path());
        write(folder_ / "tiny.yaml", kConfig);
    }
    storage::TemporaryFolder folder_;
};

TEST_F(TamperedPictures, AreToldInEveryFileOfAVote) {
    const Outcome outcome = run_ranks(folder_.path(), 2, {});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    add_missing_steps(folder_ / "result");
    expect_verified(folder_ / "result");
    const std::vector<Edit> edits{
        {"probability of a member", "groups/0/predictions.npy",
         [](const ResultCopy& copy) { copy.flip_bit("groups/0/predictions.npy", 4); }},
        {"probability of the ensemble", "evaluation/ensemble.npy",
         [](const ResultCopy& copy) { copy.flip_bit("evaluation/ensemble.npy", 4); }},
        {"label", "evaluation/labels.npy",
         [](const ResultCopy& copy) { copy.flip_bit("evaluation/labels.npy", 4); }},
        {"truncated array", "groups/1/predictions.npy",
         [](const ResultCopy& copy) {
             const std::string text = copy.text("groups/1/predictions.npy");
             copy.put("groups/1/predictions.npy", text.substr(0, text.size() - 4));
         }},
        {"name of a sample", "evaluation/samples.txt",
         [](const ResultCopy& copy) {
             const std::string text = copy.text("evaluation/samples.txt");
             copy.put("evaluation/samples.txt", text.substr(text.find('\n') + 1));
         }},
        {"interval", kResult,
         [](const ResultCopy& copy) {
             copy.increase(kResult, "/quality/confidence_interval/low");
         }},
        {"interval over members", kResult,
         [](const ResultCopy& copy) { copy.increase(kResult, "/quality/members_interval/high"); }},
        {"bit of the weights", "groups/1/weights.safetensors",
         [](const ResultCopy& copy) { copy.flip_bit("groups/1/weights.safetensors", 4000); }},
    };
    for (const Edit& edit : edits) expect_told(folder_ / "result", edit);
}

TEST_F(TamperedPictures, MayComeFromGroupsThatFailed) {
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "set/train")) {
        if (entry.is_regular_file()) fs::resize_file(entry.path(), 300);
    }
    const Outcome outcome = run_ranks(folder_.path(), 2, {});
    ASSERT_EQ(outcome.exit_code, 4) << outcome.error;
    expect_verified(folder_ / "result");
}

}  // namespace
}  // namespace hpcai::end_to_end
