// SPDX-License-Identifier: Apache-2.0
#include "weather_edits.hpp"

/// Manipulated results: `hpcai500 verify` and scripts/verify_result agree on each.
namespace hpcai::end_to_end {
namespace {

constexpr const char* kTamperedWeather = R"(run: {name: tiny, seed: 3}
workload:
  {kind: extreme_weather, model: faster_rcnn_r50_fpn, classes: 4, image_size: 64, image_width: 96,
   channels: 16, backbone_width: 8, target_quality: 0.35, penalty_exponent: 10, epochs: 1}
detector:
  {pyramid_channels: 16, head_features: 32, anchor_samples: 32,
   anchor_sizes: [16, 24, 40, 64, 96], region_samples: 16, training_proposals: 50,
   inference_proposals: 50}
bagging: {M: 2, P_degree: 2, sampler: poisson, aggregation: wbf, out_of_bag: false}
data: {kind: climate_synthetic, synthetic_samples: 16, synthetic_validation_samples: 6}
training: {batch_size: 4, learning_rate: 0.01, schedule: constant, warmup_epochs: 0, precision: fp32}
device: {kind: cpu, threads: 1}
)";

class TamperedWeather : public testing::Test {
protected:
    static void SetUpTestSuite() {
        folder_ = new storage::TemporaryFolder();
        write(*folder_ / "tiny.yaml", kTamperedWeather);
        const Outcome outcome = run_ranks(folder_->path(), 4, {});
        ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
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

TEST_F(TamperedWeather, IsDetectedWhereANumberOfTheScoreWasChanged) {
    expect_all_told(edits_of_scores());
}

TEST_F(TamperedWeather, IsDetectedWhereAStepWasChanged) {
    expect_all_told(edits_of_steps());
}

TEST_F(TamperedWeather, IsDetectedWhereAPredictionWasChanged) {
    expect_all_told(edits_of_predictions());
}

TEST_F(TamperedWeather, IsReportedAsOfAnotherBuild) {
    const std::string note = "note: another build of the program wrote this result";
    const ResultCopy copy(result());
    copy.put("notes.txt", "all was well");
    const Outcome same = verify_by_program(copy.path());
    EXPECT_EQ(same.exit_code, 10);
    EXPECT_EQ(same.out.find(note), std::string::npos) << same.out;
    copy.set("result.json", "/environment/compiler", "another");
    const Outcome other = verify_by_program(copy.path());
    EXPECT_EQ(other.exit_code, 10);
    EXPECT_TRUE(other.out.starts_with(note)) << other.out;
}

TEST_F(TamperedWeather, IsDetectedWhereAFileWasChanged) {
    expect_all_told(edits_of_files());
    expect_all_told(edits_of_the_launch());
}

TEST_F(TamperedWeather, IsDetectedByTheResultLineWhereNothingElseCan) {
    expect_all_told(edits_that_only_the_manifest_tells());
}

TEST_F(TamperedWeather, IsRejectedWithoutTheLegalValueUnlessItIsRequested) {
    const ResultCopy copy(result());
    copy.set(kResult, "/workload/seed", 4);
    const std::string script = cli::source("scripts/verify_result");
    for (const Outcome& outcome : {cli::run_in(copy.path(), {"verify", "."}),
                                   cli::execute_in(copy.path(), {"python3", script, copy.path()}),
                                   cli::run_in(copy.path(), {"verify", ".", "--json"})}) {
        EXPECT_EQ(outcome.exit_code, 10) << outcome.error;
        EXPECT_NE(outcome.out.find(", which is wrong, according to config"), std::string::npos)
            << outcome.out;
        EXPECT_EQ(outcome.out.find("; must"), std::string::npos) << outcome.out;
    }
    for (const Outcome& outcome : {verify_by_program(copy.path()), verify_by_script(copy.path())}) {
        EXPECT_NE(outcome.out.find("; must be "), std::string::npos) << outcome.out;
    }
}

/// Writes another header before the elements of 12 samples.
void put_header(const ResultCopy& copy, const std::string& file, const std::string& header) {
    const std::string content = copy.text(file);
    const std::string length{static_cast<char>((header.size() + 1) & 0xff),
                             static_cast<char>((header.size() + 1) >> 8)};
    copy.put(file, content.substr(0, 8) + length + header + "\n" +
                       content.substr(content.size() - std::size_t{4} * 12));
}

/// Removes a label of labels.npy, as if a wrongly predicted sample were removed.
void leave_out_a_label(const ResultCopy& copy) {
    std::string content = copy.text("evaluation/labels.npy");
    content.replace(content.size() - 4, 4, 4, '\xff');
    copy.put("evaluation/labels.npy", content);
}

TEST_F(TamperedWeather, IsDetectedWhereTheManifestHasAnotherForm) {
    const std::string text = text_of(result() / storage::kManifestName);
    const std::string zeros(64, '0');
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string changed = text;
        return changed.replace(changed.find(from), from.size(), to);
    };
    std::string returns = text;
    for (std::size_t at = 0; (at = returns.find('\n', at)) != std::string::npos; at += 2) {
        returns.insert(at, 1, '\r');
    }
    for (const std::string& changed :
         {with("  config.yaml", "  ./config.yaml"), with("  config.yaml", " *config.yaml"), returns,
          zeros + "  config.yaml\n" + text, text.substr(0, text.size() - 1)}) {
        const ResultCopy copy(result());
        copy.put(storage::kManifestName, changed);
        const std::string summary = copy.text(report::kSummaryName);
        copy.put(report::kSummaryName, summary.substr(0, summary.rfind('=') + 1) +
                                           storage::sha256_hex(storage::bytes_of(changed)) + "\n");
        const Edit edit{changed.substr(0, 100), storage::kManifestName, "", {}};
        expect_found(verify_by_program(copy.path()), "manifest.sha256: ", edit, "program");
        expect_found(verify_by_script(copy.path()), "manifest.sha256: ", edit, "script");
    }
}

TEST_F(TamperedWeather, IsDetectedWhereTheManifestHasAnotherDigest) {
    const ResultCopy copy(result());
    copy.change_digit(storage::kManifestName, "");
    const Edit edit{"digest of config.yaml", storage::kManifestName, "", {}};
    const std::string line = "config.yaml: has the SHA-256";
    expect_found(verify_by_program(copy.path()), line, edit, "program");
    expect_found(verify_by_script(copy.path()), line, edit, "script");
}

TEST_F(TamperedWeather, IsNotReadThroughALink) {
    const ResultCopy copy(result());
    const fs::path secret = copy.path().parent_path() / "secret";
    write(secret, "the secret\n");
    for (const char* name : {"groups/0/steps.csv", "config.yaml", "evaluation/annotations.json"}) {
        fs::remove(copy.path() / name);
        fs::create_symlink(secret, copy.path() / name);
        for (const Outcome& outcome :
             {verify_by_program(copy.path()), verify_by_script(copy.path())}) {
            EXPECT_EQ(outcome.exit_code, 10) << name;
            const std::string line = name + std::string(": is not a regular file\n");
            EXPECT_NE(outcome.out.find(line), std::string::npos) << outcome.out << outcome.error;
            EXPECT_EQ(outcome.out.find("the secret"), std::string::npos) << outcome.out;
        }
    }
}

TEST_F(TamperedWeather, IsDetectedWhereANameIsNoText) {
    const ResultCopy copy(result());
    write(copy.path() / "groups/0/\x1b\xff", "");
    for (const Outcome& outcome : {verify_by_program(copy.path()), verify_by_script(copy.path())}) {
        EXPECT_EQ(outcome.exit_code, 10) << outcome.error;
        EXPECT_NE(outcome.out.find("groups/0/\\x1b"), std::string::npos) << outcome.out;
        EXPECT_NE(outcome.out.find(": exists; "), std::string::npos) << outcome.out;
    }
}

class TamperedPictures : public testing::Test {
protected:
    void SetUp() override {
        make_pictures(folder_.path());
        write(folder_ / "tiny.yaml", kConfig);
    }
    storage::TemporaryFolder folder_;
};

/// Adds what only an architecture search states.
void add_search(const ResultCopy& copy) {
    const std::string file = "groups/0/record.json";
    auto result = records::from_json<GroupResult>(copy.text(file), file);
    result.search.emplace();
    copy.put(file, records::to_json(result));
}

TEST_F(TamperedPictures, AreDetectedInEveryFileOfAVote) {
    const Outcome outcome = run_ranks(folder_.path(), 2, {});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    expect_verified(folder_ / "result");
    const std::string member = "groups/0/predictions.npy", other = "groups/1/predictions.npy";
    const std::string labels = "evaluation/labels.npy";
    const std::string tail(std::size_t{128} << 10, '\0');
    const std::vector<Edit> edits{
        {"probability of a member", member, "record.predictions_sha256 is",
         [=](const ResultCopy& copy) { copy.flip_bit(member, 4); }, "groups/0/record.json"},
        {"probability of the ensemble", "evaluation/ensemble.npy", "sample",
         [](const ResultCopy& copy) { copy.flip_bit("evaluation/ensemble.npy", 4); }},
        {"search", "groups/0/record.json", "search", add_search},
        {"label", labels, "quality.labels_sha256 is",
         [=](const ResultCopy& copy) { copy.flip_bit(labels, 4); }, kResult},
        {"label of a sample that does not count", labels,
         "number of unscored samples is 1; must be 0", leave_out_a_label},
        {"label of a sample that was not bad", labels,
         "number of unscored samples is 1; must be at most 0",
         [=](const ResultCopy& copy) {
             leave_out_a_label(copy);
             change_setting(copy, "on_bad_sample: fail", "on_bad_sample: skip",
                            "/data/on_bad_sample", "skip");
         }},
        {"first label of a folder", labels, "label of sample 1 is 0, which is not the class of its",
         [=](const ResultCopy& copy) { copy.flip_bit(labels, std::size_t{4} * 12); }},
        {"labels of a folder", labels, "label of sample 9 is 0, which is not the class of its",
         [=](const ResultCopy& copy) {
             const std::string text = copy.text(labels);
             copy.put(labels, text.substr(0, text.size() - 12) + std::string(12, '\0'));
         }},
        {"no probability", other, "sample 11 has the minimum -",
         [=](const ResultCopy& copy) {
             const std::string text = copy.text(other), minus_3{"\0\0\x40\xc0", 4};
             copy.put(other, text.substr(0, text.size() - 4) + minus_3);
         }},
        {"copied predictions", other, "record.predictions_sha256 is that of group 0",
         [=](const ResultCopy& copy) { copy.put(other, copy.text(member)); },
         "groups/1/record.json"},
        {"copied weights", "groups/1/weights.safetensors", "training_digest is that of group 0",
         [](const ResultCopy& copy) {
             copy.put("groups/1/weights.safetensors", copy.text("groups/0/weights.safetensors"));
         },
         "groups/1/record.json"},
        {"truncated array", other, "",
         [=](const ResultCopy& copy) {
             const std::string text = copy.text(other);
             copy.put(other, text.substr(0, text.size() - 4));
         },
         other},
        {"array with a tail", other, "has 131",
         [=](const ResultCopy& copy) { copy.put(other, copy.text(other) + tail); }},
        {"header of signs", labels, "",
         [=](const ResultCopy& copy) { put_header(copy, labels, std::string(60'000, '-')); },
         labels},
        {"header in other words", labels, "",
         [=](const ResultCopy& copy) {
             put_header(copy, labels, R"({"descr":"<i4","shape":(1_2,),"fortran_order":False} #)");
         },
         labels},
        {"name of a sample", "evaluation/samples.txt", "number of lines is",
         [](const ResultCopy& copy) {
             const std::string text = copy.text("evaluation/samples.txt");
             copy.put("evaluation/samples.txt", text.substr(text.find('\n') + 1));
         }},
        increased("interval", "quality.confidence_interval.low"),
        {"interval over members", kResult, "quality.members_interval",
         [](const ResultCopy& copy) { copy.increase(kResult, "/quality/members_interval/high"); }},
        {"bit of the weights", "groups/1/weights.safetensors", "training_digest is",
         [](const ResultCopy& copy) { copy.flip_bit("groups/1/weights.safetensors", 4000); },
         "groups/1/record.json"},
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
