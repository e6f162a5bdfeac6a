// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "result_edits.hpp"
#include "result_names.hpp"
#include "support/files_below.hpp"

/// One run of two small detectors of two ranks each on synthetic weather, shared by all tests
/// here.
namespace hpcai::end_to_end {
namespace {

constexpr const char* kWeather = R"(run: {name: tiny, seed: 3, roofline: off}
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

class DetectorRun : public testing::Test {
protected:
    static void SetUpTestSuite() {
        folder_ = new storage::TemporaryFolder();
        write(*folder_ / "tiny.yaml", kWeather);
        outcome_ = new Outcome(run_ranks(folder_->path(), 4, {}));
        ASSERT_EQ(outcome_->exit_code, 0) << outcome_->error;
    }
    static void TearDownTestSuite() {
        delete folder_;
        delete outcome_;
    }

    static fs::path result(const std::string& name) { return *folder_ / ("result/" + name); }
    static nlohmann::json evaluate(const std::vector<std::string>& detections) {
        std::vector<std::string> words{"evaluate", "--json", "--annotations",
                                       result("evaluation/annotations.json"), "--detections"};
        for (const std::string& file : detections) words.push_back(result(file));
        const Outcome outcome = cli::run_in(folder_->path(), words);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
        return nlohmann::json::parse(outcome.out);
    }

    static storage::TemporaryFolder* folder_;
    static Outcome* outcome_;
};

storage::TemporaryFolder* DetectorRun::folder_ = nullptr;
Outcome* DetectorRun::outcome_ = nullptr;

TEST_F(DetectorRun, LeavesTheFilesOfTheInterfaceAndNoOthers) {
    EXPECT_EQ(tests::files_below(result("")),
              result_names("detections.json",
                           {"evaluation/ensemble.json", "evaluation/annotations.json"}));
}

TEST_F(DetectorRun, EndsWithTheResultLineAndPassesItsAudits) {
    EXPECT_TRUE(last_line(outcome_->out)
                    .starts_with("RESULT CUSTOM  workload=extreme_weather M=2 P=2 FLOPS="))
        << last_line(outcome_->out);
    for (const auto& group : json_of(result("result.json"))["work"]["groups"]) {
        EXPECT_GE(group["audit"]["passed"], 1);
        EXPECT_TRUE(group["final_training_loss"].is_number());
    }
}

TEST_F(DetectorRun, HasQualitiesThatAnyoneCanRecompute) {
    const nlohmann::json quality = json_of(result("result.json"))["quality"];
    EXPECT_EQ(quality["metric"], "coco_ap50");
    ASSERT_EQ(quality["categories"].size(), 4U);
    EXPECT_EQ(quality["categories"][3]["name"], "atmospheric river");
    for (const std::string member : {"0", "1"}) {
        const nlohmann::json said = evaluate({"groups/" + member + "/detections.json"});
        EXPECT_DOUBLE_EQ(quality["members"][std::stoul(member)], said["quality"]) << member;
    }
    const nlohmann::json ensemble = evaluate({"evaluation/ensemble.json"});
    EXPECT_DOUBLE_EQ(quality["ensemble"], ensemble["quality"]);
    EXPECT_DOUBLE_EQ(quality["confidence_interval"]["low"], ensemble["confidence_interval"][0]);
    EXPECT_DOUBLE_EQ(quality["confidence_interval"]["high"], ensemble["confidence_interval"][1]);
}

TEST_F(DetectorRun, IsRejectedWithTheDetectionsOfTheOtherModel) {
    const ResultCopy copy(result(""));
    const auto verify = [&](std::vector<std::string> options) {
        options.insert(options.begin(), {"verify", copy.path()});
        return cli::run_in(folder_->path(), options);
    };
    EXPECT_EQ(verify({"--data", ".", "--replay", "4"}).exit_code, 0);
    const std::string groups[]{"groups/0/", "groups/1/"};
    const std::string first = copy.text(groups[0] + "detections.json");
    copy.put(groups[0] + "detections.json", copy.text(groups[1] + "detections.json"));
    copy.put(groups[1] + "detections.json", first);
    const nlohmann::json records[]{json_of(copy.path() / groups[0] / "record.json"),
                                   json_of(copy.path() / groups[1] / "record.json")};
    for (std::size_t group = 0; group < 2; ++group) {
        const nlohmann::json& other = records[1 - group];
        copy.set(groups[group] + "record.json", "/quality", other["quality"]);
        copy.set(groups[group] + "record.json", "/record/predictions_sha256",
                 other["record"]["predictions_sha256"]);
    }
    score_again(folder_->path(), copy);
    EXPECT_EQ(verify({}).exit_code, 0);
    const Outcome outcome = verify({"--data", "."});
    EXPECT_EQ(outcome.exit_code, 10);
    for (const std::string& group : groups)
        EXPECT_NE(outcome.out.find(group + "detections.json: "), std::string::npos) << outcome.out;
}

TEST_F(DetectorRun, DrawsTheDetectionsOfASampleAndRefusesOtherLabels) {
    const auto show = [](const std::string& directory, const std::string& score) {
        return cli::run_in(folder_->path(), {"data", "show", directory, "--sample", "3",
                                             "--lowest-score", score, "--output", "boxes.png"});
    };
    const auto count = [](const nlohmann::json& boxes) {
        return std::ranges::count_if(boxes, [](const auto& box) { return box["image_id"] == 3; });
    };
    const Outcome all = show("result", "0");
    EXPECT_EQ(all.exit_code, 0) << all.error;
    EXPECT_TRUE(all.out.starts_with("wrote boxes.png: TMQ of sample 3, 64 x 96 pixels\n"));
    const auto truth = json_of(result("evaluation/annotations.json"));
    const auto detections = count(json_of(result("evaluation/ensemble.json")));
    EXPECT_EQ(std::ranges::count(all.out, '\n'),
              2 + count(truth["annotations"]) + std::max<std::ptrdiff_t>(detections, 1));
    EXPECT_EQ(all.out.find("detected with score") != std::string::npos, detections > 0);
    const Outcome none = show("result", "1");
    EXPECT_EQ(none.out.find("detected with score 0"), std::string::npos);
    EXPECT_NE(none.out.find("\nno detection reaches --lowest-score 1; the highest score is 0"),
              std::string::npos)
        << none.out;

    fs::create_directory(*folder_ / "other");
    fs::copy(result("evaluation"), *folder_ / "other/evaluation");
    std::string config = text_of(result("config.yaml"));
    config.replace(config.find("seed: 3"), 7, "seed: 4");
    write(*folder_ / "other/config.yaml", config);
    const Outcome refused = show("other", "0");
    EXPECT_EQ(refused.exit_code, 4) << refused.out;
    EXPECT_NE(refused.error.find("data show: other: the labels of sample 3 differ"),
              std::string::npos)
        << refused.error;
}

TEST_F(DetectorRun, ExportsItsWeightsUnderTorchvisionsNames) {
    const Outcome outcome = cli::run_in(
        folder_->path(), {"export", "result", "--group", "1", "--output", "model.safetensors"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_NE(text_of(*folder_ / "model.safetensors").find("roi_heads.box_head.fc6.weight"),
              std::string::npos);
    const nlohmann::json settings = json_of(*folder_ / "model.json");
    EXPECT_EQ(settings["height"], 64);
    EXPECT_EQ(settings["width"], 96);
    EXPECT_EQ(settings["anchor_sizes"], nlohmann::json({16, 24, 40, 64, 96}));
    EXPECT_EQ(settings["classes"][3], "atmospheric river");
}

}  // namespace
}  // namespace hpcai::end_to_end
