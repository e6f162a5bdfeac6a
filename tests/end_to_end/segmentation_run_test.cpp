// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <hpcai/report/csv.hpp>

#include "result_edits.hpp"
#include "result_names.hpp"
#include "support/files_below.hpp"

/// One run of two small segmentation models of two ranks each on synthetic weather, shared by all
/// tests here.
namespace hpcai::end_to_end {
namespace {

constexpr const char* kResult = "result.json";
constexpr std::int64_t kSamples = 6, kCells = 8 * 12, kClasses = 5;

constexpr const char* kSegmentedWeather = R"(run: {name: tiny, seed: 3, roofline: off}
workload:
  {kind: climate_segmentation, model: segmentation_net, classes: 4, image_size: 64, image_width: 96,
   channels: 16, target_quality: 0.5, penalty_exponent: 5, epochs: 2}
bagging: {M: 2, P_degree: 2, sampler: poisson, aggregation: soft_vote, out_of_bag: false}
data: {kind: climate_synthetic, synthetic_samples: 16, synthetic_validation_samples: 6}
training: {batch_size: 4, learning_rate: 0.05, learning_rate_batch: 4, schedule: constant,
           warmup_epochs: 0, precision: fp32}
device: {kind: cpu, threads: 1}
)";

class SegmentationRun : public testing::Test {
protected:
    static void SetUpTestSuite() {
        folder_ = new storage::TemporaryFolder();
        write(*folder_ / "tiny.yaml", kSegmentedWeather);
        outcome_ = new Outcome(run_ranks(folder_->path(), 4, {}));
        ASSERT_EQ(outcome_->exit_code, 0) << outcome_->error;
    }
    static void TearDownTestSuite() {
        delete folder_;
        delete outcome_;
    }

    static fs::path result(const std::string& name) { return *folder_ / ("result/" + name); }

    static storage::TemporaryFolder* folder_;
    static Outcome* outcome_;
};

storage::TemporaryFolder* SegmentationRun::folder_ = nullptr;
Outcome* SegmentationRun::outcome_ = nullptr;

/// Returns the mean intersection over union of probabilities (samples x cells, classes).
double mean_iou(const fs::path& probabilities, const fs::path& labels) {
    const storage::NpyArray said = storage::read_npy(probabilities);
    const storage::NpyArray known = storage::read_npy(labels);
    EXPECT_EQ(said.shape(), (tensor::Shape{kSamples * kCells, kClasses}));
    EXPECT_EQ(known.shape(), (tensor::Shape{kSamples * kCells}));
    std::array<double, kClasses> hits{}, unions{};
    for (std::size_t cell = 0; cell < known.as<std::int32_t>().size(); ++cell) {
        const auto row = said.as<float>().subspan(cell * kClasses, kClasses);
        const auto guess = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
        const auto label = static_cast<std::size_t>(known.as<std::int32_t>()[cell]);
        hits[label] += guess == label;
        ++unions[label];
        if (guess != label) ++unions[guess];
    }
    double sum = 0, classes = 0;
    for (std::size_t k = 0; k < kClasses; ++k) {
        if (unions[k] == 0) continue;
        sum += hits[k] / unions[k];
        ++classes;
    }
    return sum / classes;
}

TEST_F(SegmentationRun, LeavesTheFilesOfTheInterfaceAndNoOthers) {
    EXPECT_EQ(
        tests::files_below(result("")),
        result_names("predictions.npy", {"evaluation/ensemble.npy", "evaluation/labels.npy",
                                         "evaluation/samples.txt", "evaluation/classes.txt"}));
}

TEST_F(SegmentationRun, EndsWithTheResultLineAndATableOfItsClasses) {
    EXPECT_TRUE(last_line(outcome_->out)
                    .starts_with("RESULT CUSTOM  workload=climate_segmentation M=2 P=2 FLOPS="))
        << last_line(outcome_->out);
    for (const char* name : {"\nbackground ", "\natmospheric river ", "\npixel accuracy "}) {
        EXPECT_NE(outcome_->out.find(name), std::string::npos) << name;
    }
}

TEST_F(SegmentationRun, HasQualitiesThatAnyoneCanRecompute) {
    const nlohmann::json quality = json_of(result(kResult))["quality"];
    const fs::path labels = result("evaluation/labels.npy");
    EXPECT_EQ(quality["metric"], "mean_iou");
    EXPECT_DOUBLE_EQ(quality["ensemble"], mean_iou(result("evaluation/ensemble.npy"), labels));
    for (const std::string member : {"0", "1"}) {
        EXPECT_DOUBLE_EQ(quality["members"][std::stoul(member)],
                         mean_iou(result("groups/" + member + "/predictions.npy"), labels));
    }
    ASSERT_EQ(quality["segments"].size(), 5U);
    std::int64_t cells = 0, hits = 0;
    for (const auto& segment : quality["segments"]) {
        cells += segment["cells"].get<std::int64_t>();
        hits += segment["hits"].get<std::int64_t>();
    }
    EXPECT_EQ(cells, kSamples * kCells);
    EXPECT_DOUBLE_EQ(quality["ensemble_pixel_accuracy"],
                     static_cast<double>(hits) / static_cast<double>(cells));
    EXPECT_LE(quality["confidence_interval"]["low"], quality["ensemble"]);
    EXPECT_GE(quality["confidence_interval"]["high"], quality["ensemble"]);
}

TEST_F(SegmentationRun, IsEvaluatedFromItsFiles) {
    const nlohmann::json quality = json_of(result(kResult))["quality"];
    const std::vector<std::string> labels{"evaluate",
                                          "--labels",
                                          "result/evaluation/labels.npy",
                                          "--predictions",
                                          "result/groups/0/predictions.npy",
                                          "result/groups/1/predictions.npy"};
    const auto evaluated = [&](const std::vector<std::string>& options) {
        std::vector<std::string> arguments = labels;
        arguments.insert(arguments.end(), options.begin(), options.end());
        return cli::run_in(folder_->path(), arguments);
    };
    const Outcome outcome = evaluated({"--cells", "96", "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    const nlohmann::json report = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(report["samples"], kSamples);
    EXPECT_EQ(report["quality"], quality["ensemble"]);
    EXPECT_EQ(report["pixel_accuracy"], quality["ensemble_pixel_accuracy"]);
    EXPECT_EQ(report["confidence_interval"][0], quality["confidence_interval"]["low"]);
    EXPECT_EQ(report["confidence_interval"][1], quality["confidence_interval"]["high"]);
    EXPECT_EQ(report["members"][1]["mean_iou"], quality["members"][1]);
    EXPECT_NE(evaluated({"--cells", "96"}).out.find("mean IoU"), std::string::npos);
    const Outcome uneven = evaluated({"--cells", "97"});
    EXPECT_EQ(uneven.exit_code, 4);
    EXPECT_NE(uneven.error.find("--cells: expected a divisor of the 576 labels, got 97"),
              std::string::npos)
        << uneven.error;
}

TEST_F(SegmentationRun, LearnsFromItsLoss) {
    const auto steps = report::steps_from_csv(text_of(result("groups/0/steps.csv")), "steps.csv");
    ASSERT_GE(steps.size(), 4U);
    EXPECT_LT(steps.back().loss, steps.front().loss);
}

TEST_F(SegmentationRun, ComparesAsTheSameWithItself) {
    const Outcome outcome = cli::run_in(folder_->path(), {"compare", "result", "result"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_NE(outcome.out.find("both have the same probabilities"), std::string::npos)
        << outcome.out;
}

TEST_F(SegmentationRun, VerifiesWhereNothingWasChanged) {
    expect_verified(result(""));
    const Outcome outcome =
        cli::run_in(folder_->path(), {"verify", "result", "--data", ".", "--replay", "2"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.error;
    EXPECT_NE(outcome.out.find(" test samples, generated again without --data ("),
              std::string::npos)
        << outcome.out;
}

/// Removes the last `cells` of the first sample from the evaluation.
void unlabel(const ResultCopy& copy, std::int64_t cells) {
    const std::string labels = "evaluation/labels.npy";
    std::string content = copy.text(labels);
    const auto behind = static_cast<std::size_t>(4 * (kSamples - 1) * kCells);
    const auto bytes = static_cast<std::size_t>(4 * cells);
    content.replace(content.size() - behind - bytes, bytes, bytes, '\xff');
    copy.put(labels, content);
}

TEST_F(SegmentationRun, IsDetectedWhereAFileOrANumberWasChanged) {
    const std::string labels = "evaluation/labels.npy", names = "evaluation/classes.txt";
    const auto increased = [](const std::string& name, const std::string& key) {
        std::string pointer = "/" + key;
        std::ranges::replace(pointer, '.', '/');
        return Edit{name, kResult, key + " is",
                    [=](const ResultCopy& copy) { copy.increase(kResult, pointer); }};
    };
    const auto flipped = [](const std::string& name, const std::string& file,
                            const std::string& finding, const std::string& at) {
        return Edit{name, file, finding, [=](const ResultCopy& copy) { copy.flip_bit(file, 4); },
                    at};
    };
    const std::vector<Edit> edits{
        flipped("probability of a member", "groups/0/predictions.npy",
                "record.predictions_sha256 is", "groups/0/record.json"),
        flipped("probability of the ensemble", "evaluation/ensemble.npy", "cell", ""),
        flipped("label", labels, "quality.labels_sha256 is", kResult),
        flipped("weight", "groups/1/weights.safetensors", "training_digest is",
                "groups/1/record.json"),
        {"cell without a label", labels,
         "sample 0 has 1 unscored of 96 cells; must have none or all",
         [](const ResultCopy& copy) { unlabel(copy, 1); }},
        {"sample without a label", labels, "number of unscored samples is 1; must be 0",
         [](const ResultCopy& copy) { unlabel(copy, kCells); }},
        increased("quality of the ensemble", "quality.ensemble"),
        increased("pixel accuracy", "quality.ensemble_pixel_accuracy"),
        {"quality of a class", kResult, "quality.segments",
         [](const ResultCopy& copy) { copy.increase(kResult, "/quality/segments/0/iou"); }},
        {"cells of a class", kResult, "quality.segments",
         [](const ResultCopy& copy) { copy.set(kResult, "/quality/segments/1/cells", 1000); }},
        {"FLOPs of a sample", kResult, "flops.forward_per_sample is",
         [](const ResultCopy& copy) { copy.set(kResult, "/flops/forward_per_sample", 1000); }},
        {"end of the names", names, "the last line has no newline",
         [=](const ResultCopy& copy) {
             const std::string text = copy.text(names);
             copy.put(names, text.substr(0, text.size() - 1));
         }},
        {"name of a class", names, "number of lines is 4; must be 5, one per class",
         [=](const ResultCopy& copy) {
             const std::string text = copy.text(names);
             copy.put(names, text.substr(text.find('\n') + 1));
         },
         "", false},
    };
    for (const Edit& edit : edits) expect_told(result(""), edit);
}

TEST_F(SegmentationRun, ExportsItsWeights) {
    const Outcome outcome = cli::run_in(
        folder_->path(), {"export", "result", "--group", "1", "--output", "model.safetensors"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_NE(text_of(*folder_ / "model.safetensors").find("head.conv2.weight"), std::string::npos);
}

}  // namespace
}  // namespace hpcai::end_to_end
