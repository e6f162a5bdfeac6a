// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

#include <hpcai/config/reader.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/storage/safetensors.hpp>
#include <hpcai/storage/sha256.hpp>

#include "launch.hpp"
#include "result_names.hpp"
#include "support/files_below.hpp"

/// One complete run of two groups of two ranks, shared by all tests here.
namespace hpcai::end_to_end {
namespace {

class CompleteRun : public testing::Test {
protected:
    static void SetUpTestSuite() {
        folder_ = new storage::TemporaryFolder();
        make_pictures(folder_->path());
        write(*folder_ / "tiny.yaml", kResNet50Config);
        setenv("HPCAI500_TEST_SECRET", "do-not-write-this", 1);
        outcome_ = new Outcome(
            run_ranks(folder_->path(), 4,
                      {"bagging.P_degree=2", "bagging.sampler=poisson", "workload.classes=auto"}));
        ASSERT_EQ(outcome_->exit_code, 0) << outcome_->error;
    }
    static void TearDownTestSuite() {
        delete folder_;
        delete outcome_;
    }

    static fs::path result(const std::string& name) { return *folder_ / ("result/" + name); }
    static nlohmann::json record() { return json_of(result("result.json")); }

    static storage::TemporaryFolder* folder_;
    static Outcome* outcome_;
};

storage::TemporaryFolder* CompleteRun::folder_ = nullptr;
Outcome* CompleteRun::outcome_ = nullptr;

TEST_F(CompleteRun, LeavesTheFilesOfTheInterfaceAndNoOthers) {
    EXPECT_EQ(tests::files_below(result("")),
              result_names("predictions.npy", {"evaluation/ensemble.npy", "evaluation/labels.npy",
                                               "evaluation/samples.txt"}));
}

TEST_F(CompleteRun, ProvesItsFilesBySha256sum) {
    const Outcome check =
        cli::execute_in(result(""), {"sha256sum", "--check", "--strict", "manifest.sha256"});
    EXPECT_EQ(check.exit_code, 0) << check.out << check.error;
    EXPECT_EQ(std::count(check.out.begin(), check.out.end(), '\n'), 22) << check.out;
}

TEST_F(CompleteRun, PrintsItsSummaryAndEndsWithTheResultLine) {
    const std::string hint =
        "report: result/report.html\ncheck: hpcai500 verify result\n"
        "compare: hpcai500 compare result DIR\n";
    std::string summary = text_of(result("summary.txt"));
    summary.insert(summary.find("RESULT "), hint);
    EXPECT_EQ(outcome_->out, summary);
    const std::regex line(
        R"(RESULT CUSTOM  workload=image_classification M=2 P=2 FLOPS=\d\.\d{3}e\+\d\d )"
        R"(VFLOPS=\d\.\d{3}e[+-]\d\d quality=[01]\.\d{4} target=0\.2500 manifest=([0-9a-f]{64}))");
    std::smatch found;
    const std::string last = last_line(outcome_->out);
    ASSERT_TRUE(std::regex_match(last, found, line)) << last;
    EXPECT_EQ(found[1], storage::sha256_hex_of_file(result("manifest.sha256")));
    EXPECT_NE(outcome_->out.find("\nreason: run.level is custom"), std::string::npos);
    EXPECT_EQ(messages(*outcome_), std::vector<std::string>());
}

TEST_F(CompleteRun, RecordsWhyItsAllReducesHaveNoBandwidth) {
    EXPECT_EQ(record()["communication"]["bandwidth_bytes_per_second_reason"],
              "only NCCL in a CUDA graph times its all-reduces");
}

TEST_F(CompleteRun, RecordsTheNumberOfClassesThatItCounted) {
    const std::string config = text_of(result("config.yaml"));
    EXPECT_NE(config.find("\n  classes: 4\n"), std::string::npos) << config;
    EXPECT_EQ(config::to_yaml(config::parse(record()["config"].dump(), "result.json", {})), config);
}

TEST_F(CompleteRun, HasAnEnsembleThatAnyoneCanRecompute) {
    const storage::NpyArray ensemble = storage::read_npy(result("evaluation/ensemble.npy"));
    const storage::NpyArray labels = storage::read_npy(result("evaluation/labels.npy"));
    const storage::NpyArray first = storage::read_npy(result("groups/0/predictions.npy"));
    const storage::NpyArray second = storage::read_npy(result("groups/1/predictions.npy"));
    ASSERT_EQ(ensemble.shape(), (tensor::Shape{12, 4}));
    ASSERT_EQ(first.shape(), ensemble.shape());
    ASSERT_EQ(second.shape(), ensemble.shape());
    ASSERT_EQ(labels.shape(), (tensor::Shape{12}));
    for (std::size_t i = 0; i < 48; ++i) {
        const float mean = (first.as<float>()[i] + second.as<float>()[i]) / 2;
        EXPECT_NEAR(ensemble.as<float>()[i], mean, 1e-7) << i;
    }
    const nlohmann::json quality = record()["quality"];
    EXPECT_DOUBLE_EQ(quality["ensemble"], top_1(ensemble, labels));
    EXPECT_DOUBLE_EQ(quality["members"][0], top_1(first, labels));
    EXPECT_DOUBLE_EQ(quality["members"][1], top_1(second, labels));
    EXPECT_DOUBLE_EQ(quality["members_mean"], (top_1(first, labels) + top_1(second, labels)) / 2);
}

TEST_F(CompleteRun, NamesTheSamplesInTheOrderOfThePredictions) {
    const storage::NpyArray labels = storage::read_npy(result("evaluation/labels.npy"));
    std::set<std::string> classes;
    std::istringstream names(text_of(result("evaluation/samples.txt")));
    std::size_t row = 0;
    for (std::string name; std::getline(names, name); ++row) {
        EXPECT_TRUE(fs::is_regular_file(*folder_ / "set/val" / name)) << name;
        classes.insert(name.substr(0, name.find('/')));
        ASSERT_LT(row, 12U);
        EXPECT_EQ(labels.as<std::int32_t>()[row], static_cast<int>(classes.size()) - 1) << name;
    }
    EXPECT_EQ(row, 12U);
}

TEST_F(CompleteRun, ScoresByEquationsSixToEight) {
    const nlohmann::json all = record();
    double samples = 0, longest = 0;
    for (const auto& group : all["work"]["groups"]) {
        samples += group["samples_trained"].get<double>();
        longest = std::max(longest, group["training_seconds"].get<double>());
        EXPECT_EQ(group["samples_trained"], 8 * group["iterations"].get<int>());
        EXPECT_EQ(group["iterations"], group["samples_drawn"].get<int>() / 8);
    }
    const double flops = samples * all["flops"]["training_per_sample"].get<double>() / longest;
    EXPECT_NEAR(all["scores"]["flops"].get<double>() / flops, 1, 1e-12);
    const double penalty = std::pow(all["quality"]["ensemble"].get<double>() / 0.25, 5);
    EXPECT_NEAR(all["scores"]["penalty_coefficient"], penalty, 1e-9);
    EXPECT_NEAR(all["scores"]["vflops"].get<double>(), flops * penalty, 1e-9 * flops);
    EXPECT_EQ(all["work"]["samples_trained"], samples);
    EXPECT_EQ(all["time"]["training_seconds"], longest);
}

TEST_F(CompleteRun, DescribesTheLaunchButNotTheWholeEnvironment) {
    const nlohmann::json topology = record()["topology"];
    EXPECT_EQ(topology["ranks"], 4);
    EXPECT_EQ(topology["groups"], 2);
    EXPECT_EQ(topology["degree"], 2);
    ASSERT_EQ(topology["map"].size(), 4U);
    const std::string environment = text_of(result("environment.json"));
    EXPECT_EQ(environment.find("do-not-write-this"), std::string::npos);
    EXPECT_EQ(environment.find("\\u0000"), std::string::npos) << environment;
    const std::string digest = json_of(result("environment.json"))["binary_sha256"];
    EXPECT_EQ(digest, storage::sha256_hex_of_file(cli::environment("HPCAI500_BINARY")));
}

TEST_F(CompleteRun, IsTheSameAgainWhateverTheNumberOfGroups) {
    // Group 0 alone: seed, model and P are the same, and so are all bits.
    const Outcome again =
        run_ranks(folder_->path(), 2,
                  {"bagging.M=1", "bagging.P_degree=2", "bagging.sampler=poisson"}, "again");
    ASSERT_EQ(again.exit_code, 0) << again.error;
    const nlohmann::json digests = record()["training_digest"];
    EXPECT_NE(digests[0], digests[1]);
    EXPECT_EQ(json_of(*folder_ / "again/result.json")["training_digest"][0], digests[0]);
    EXPECT_EQ(text_of(*folder_ / "again/groups/0/predictions.npy"),
              text_of(result("groups/0/predictions.npy")));
}

TEST_F(CompleteRun, ExportsTheBestModelWithItsPreprocessing) {
    const Outcome exported =
        cli::run_in(folder_->path(), {"export", "result", "--output", "best.safetensors"});
    ASSERT_EQ(exported.exit_code, 0) << exported.error;
    const auto members = record()["quality"]["members"].get<std::vector<double>>();
    const std::string best = members[1] > members[0] ? "1" : "0";
    EXPECT_TRUE(exported.out.starts_with("wrote best.safetensors: base model " + best +
                                         "\nwrote best.json\n"))
        << exported.out;
    EXPECT_EQ(text_of(*folder_ / "best.safetensors"),
              text_of(result("groups/" + best + "/weights.safetensors")));
    const nlohmann::json settings = json_of(*folder_ / "best.json");
    EXPECT_EQ(settings["resize"], 37) << "32 * 256 / 224";
    EXPECT_EQ(settings["crop"], 32);
    EXPECT_EQ(settings["mean"], nlohmann::json({0.485, 0.456, 0.406}));
    EXPECT_EQ(settings["standard_deviation"], nlohmann::json({0.229, 0.224, 0.225}));
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(*folder_ / "set/val")) {
        if (entry.is_directory()) names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    EXPECT_EQ(settings["classes"], nlohmann::json(names));
    EXPECT_NE(exported.out.find("load_file(\"best.safetensors\")"), std::string::npos);
}

TEST_F(CompleteRun, TrainsOnFromExportedWeights) {
    const Outcome exported = cli::run_in(
        folder_->path(), {"export", "result", "--group", "1", "--output", "old.safetensors"});
    ASSERT_EQ(exported.exit_code, 0) << exported.error;
    EXPECT_EQ(text_of(*folder_ / "old.safetensors"),
              text_of(result("groups/1/weights.safetensors")));
    // At rate 0 only BatchNorm statistics change.
    const Outcome resumed = run_ranks(
        folder_->path(), 1,
        {"bagging.M=1", "training.learning_rate=0", "training.initial_weights=old.safetensors"},
        "resumed");
    ASSERT_EQ(resumed.exit_code, 0) << resumed.error;
    const auto before = storage::read_safetensors(*folder_ / "old.safetensors");
    const auto after = storage::read_safetensors(*folder_ / "resumed/groups/0/weights.safetensors");
    ASSERT_EQ(after.tensors().size(), before.tensors().size());
    for (const storage::StoredTensor& tensor : before.tensors()) {
        if (tensor.name.ends_with(".num_batches_tracked")) continue;
        const storage::StoredTensor* now = after.find(tensor.name);
        ASSERT_NE(now, nullptr) << tensor.name;
        const bool counted = tensor.name.find(".running_") != std::string::npos;
        EXPECT_EQ(std::ranges::equal(now->bytes, tensor.bytes), !counted) << tensor.name;
    }
}

TEST_F(CompleteRun, HasWeightsThatANetworkOfAnotherWidthRejects) {
    const Outcome refused =
        run_ranks(folder_->path(), 1,
                  {"bagging.M=1", "workload.backbone_width=8",
                   "training.initial_weights=result/groups/0/weights.safetensors"},
                  "narrow");
    EXPECT_EQ(refused.exit_code, 4) << refused.error;
    EXPECT_NE(refused.error.find("result/groups/0/weights.safetensors: tensor conv1.weight has "
                                 "shape (64, 3, 7, 7), expected (8, 3, 7, 7)"),
              std::string::npos)
        << refused.error;
}

TEST_F(CompleteRun, HasAPageWithTheNumbersOfItsRecord) {
    const std::string page = text_of(result("report.html"));
    const nlohmann::json all = record();
    std::vector<std::string> expected{all["verdict"]["status"], all["name"],
                                      all["training_digest"][1].get<std::string>().substr(0, 16),
                                      "layer4.2.conv3", "&quot;learning_rate&quot;: 0.1"};
    for (const char* key : {"flops", "vflops"}) {
        expected.push_back(fmt::format("{:.3e}", all["scores"][key].get<double>()));
    }
    expected.push_back(fmt::format("{:.4f}", all["quality"]["ensemble"].get<double>()));
    for (const auto& group : all["work"]["groups"]) {
        expected.push_back(fmt::format("{:.3e}", group["flops"].get<double>()));
        expected.push_back(fmt::format("{:.4f}", group["final_training_loss"].get<double>()));
    }
    for (const std::string& words : expected) {
        EXPECT_NE(page.find(words), std::string::npos) << words;
    }
}

TEST_F(CompleteRun, HasLogsThatKeepTheRulesOfMlperf) {
    const Outcome check =
        cli::execute_in(result(""), {"python3", cli::source("scripts/check_mllog.py"),
                                     "mllog/result_0.txt", "mllog/result_1.txt"});
    EXPECT_EQ(check.exit_code, 0) << check.out << check.error;
    const std::string log = text_of(result("mllog/result_1.txt"));
    const std::string quality = record()["quality"]["members"][1].dump();
    EXPECT_NE(log.find(fmt::format(R"("key":"eval_accuracy","value":{})", quality)),
              std::string::npos)
        << log;
    EXPECT_NE(log.find(R"("status":"success")"), std::string::npos);
}

TEST_F(CompleteRun, GivesTheSamePageAgainAndStaysAsItWasSealed) {
    const Outcome elsewhere =
        cli::run_in(folder_->path(), {"report", "result", "--output", "page.html"});
    ASSERT_EQ(elsewhere.exit_code, 0) << elsewhere.error;
    EXPECT_EQ(text_of(*folder_ / "page.html"), text_of(result("report.html")));

    const fs::path copy = *folder_ / "copy";
    fs::copy(result(""), copy, fs::copy_options::recursive);
    fs::remove(copy / "report.html");
    const Outcome renewed = cli::run_in(folder_->path(), {"report", "copy"});
    ASSERT_EQ(renewed.exit_code, 0) << renewed.error;
    EXPECT_EQ(text_of(copy / "report.html"), text_of(result("report.html")));

    std::string changed = text_of(copy / "result.json");
    changed.replace(changed.find("tiny"), 4, "huge");
    write(copy / "result.json", changed);
    const Outcome refused = cli::run_in(folder_->path(), {"report", "copy"});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.error.find("manifest.sha256 lists another digest of report.html"),
              std::string::npos)
        << refused.error;
    EXPECT_EQ(text_of(copy / "report.html"), text_of(result("report.html")));
}

TEST_F(CompleteRun, ShowsItsPageInABrowser) {
    const Outcome pictures = cli::execute_in(
        folder_->path(), {cli::source("scripts/report_screenshots.sh"), "result", "pictures"});
    if (pictures.exit_code == 77) GTEST_SKIP() << pictures.error;
    ASSERT_EQ(pictures.exit_code, 0) << pictures.out << pictures.error;
    for (const char* name : {"light.png", "dark.png", "phone.png", "report.pdf"}) {
        EXPECT_GT(fs::file_size(*folder_ / "pictures" / name), 10'000U) << name;
    }
    EXPECT_NE(text_of(*folder_ / "pictures/light.png"), text_of(*folder_ / "pictures/dark.png"));
}

}  // namespace
}  // namespace hpcai::end_to_end
