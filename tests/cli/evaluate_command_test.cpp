// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <nlohmann/json.hpp>

#include <hpcai/storage/file.hpp>
#include <hpcai/storage/npy.hpp>

#include "child_process.hpp"

namespace hpcai::cli {
namespace {

using nlohmann::json;

/// Files of test set `number` of tests/data/reference/metrics_detection.json.
class EvaluateDetections : public testing::Test {
protected:
    EvaluateDetections() { write_set(1); }

    void write_set(std::size_t number) {
        set_ = json::parse(
            text_of(source("tests/data/reference/metrics_detection.json")))["precision"][number];
        json annotations{{"images", json::array()},
                         {"categories", json::array()},
                         {"annotations", json::array()}};
        for (int id = 0; id < set_["images"]; ++id) annotations["images"].push_back({{"id", id}});
        for (int id = 1; id <= set_["categories"]; ++id) {
            annotations["categories"].push_back(
                {{"id", id}, {"name", "kind " + std::to_string(id)}});
        }
        for (const json& row : set_["boxes"]) {
            annotations["annotations"].push_back({{"image_id", row[0]},
                                                  {"category_id", row[1]},
                                                  {"bbox", {row[2], row[3], row[4], row[5]}},
                                                  {"iscrowd", row[6]}});
        }
        json detections = json::array();
        for (const json& row : set_["detections"]) {
            detections.push_back({{"image_id", row[0]},
                                  {"category_id", row[1]},
                                  {"bbox", {row[2], row[3], row[4], row[5]}},
                                  {"score", row[6]}});
        }
        write("annotations.json", annotations.dump());
        write("detections.json", detections.dump());
        write("nothing.json", "[]");
    }

    void write(const std::string& name, const std::string& text) {
        storage::write_file_durably(folder_ / name, text);
    }

    Outcome evaluate(const std::vector<std::string>& files,
                     const std::vector<std::string>& more = {}) const {
        std::vector<std::string> words{"evaluate", "--annotations", "annotations.json",
                                       "--detections"};
        words.insert(words.end(), files.begin(), files.end());
        words.insert(words.end(), more.begin(), more.end());
        return run_in(folder_.path(), words);
    }

    json evaluated(const std::vector<std::string>& files,
                   std::vector<std::string> more = {}) const {
        more.emplace_back("--json");
        const Outcome outcome = evaluate(files, more);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
        return json::parse(outcome.out);
    }

    TemporaryFolder folder_;
    json set_;
};

TEST_F(EvaluateDetections, GivesPycocotoolsAp50) {
    for (const std::size_t number : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U}) {
        write_set(number);
        const json got = evaluated({"detections.json"});
        const json& half = set_["quality"][0];
        const json& tolerant = set_["quality"][1];
        EXPECT_NEAR(got["quality"], half["mean"], 1e-12) << number;
        EXPECT_NEAR(got["ap10"], tolerant["mean"], 1e-12) << number;
        for (std::size_t index = 0; index < got["categories"].size(); ++index) {
            const json& category = got["categories"][index];
            const json& wanted = half["categories"][index];
            EXPECT_EQ(category["boxes"], wanted["boxes"]);
            EXPECT_EQ(category["detections"], wanted["detections"]);
            EXPECT_EQ(category["hits"], wanted["hits"]);
            EXPECT_EQ(category["ap50"].is_null(), wanted["boxes"] == 0);
            if (wanted["boxes"] == 0) continue;
            EXPECT_NEAR(category["ap50"], wanted["coco"], 1e-12) << number;
            EXPECT_NEAR(category["ap50_voc_area"], wanted["voc_area"], 1e-12) << number;
        }
    }
}

TEST_F(EvaluateDetections, PrintsATableForPeople) {
    const Outcome outcome = evaluate({"detections.json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_NE(outcome.out.find("12 images, 4 categories, 38 boxes, one model\nquality 0.4314  "),
              std::string::npos)
        << outcome.out;
    EXPECT_NE(outcome.out.find("\nkind 4 "), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("\nmean "), std::string::npos) << outcome.out;
}

TEST_F(EvaluateDetections, FusesSeveralLists) {
    for (const char* aggregation : {"wbf", "nms"}) {
        const json got = evaluated({"detections.json", "nothing.json", "detections.json"},
                                   {"--aggregation", aggregation});
        EXPECT_EQ(got["aggregation"], aggregation);
        EXPECT_EQ(got["members"][0]["quality"], got["members"][2]["quality"]);
        EXPECT_EQ(got["members"][1]["quality"], 0);
        EXPECT_NEAR(got["members_mean"], 2 * got["members"][0]["quality"].get<double>() / 3, 1e-12);
        EXPECT_GT(got["quality"], got["members_mean"]) << aggregation;
    }
    const json by_default = evaluated({"detections.json", "nothing.json"});
    EXPECT_EQ(by_default["aggregation"], "wbf");
    const json weighted = evaluated({"detections.json", "nothing.json"}, {"--weights", "3", "1"});
    EXPECT_NEAR(weighted["quality"], by_default["quality"], 1e-12);  // 3 / 2 x all scores
}

TEST_F(EvaluateDetections, FusesAtTheOverlapAndTheScoreThatARunWasGiven) {
    write("annotations.json",
          R"({"images":[{"id":1}],"categories":[{"id":1,"name":"one"}],"annotations":[]})");
    const auto detection = [](double width, double score) {
        return json{
            {"image_id", 1}, {"category_id", 1}, {"bbox", {0, 0, width, 10}}, {"score", score}};
    };
    write("a.json", json{detection(10, 0.9)}.dump());
    write("b.json", json{detection(6, 0.9), detection(100, 0.005)}.dump());  // IoU 0.6, 0.1
    const auto boxes = [&](const std::vector<std::string>& more) {
        return evaluated({"a.json", "b.json"}, more)["categories"][0]["detections"];
    };
    EXPECT_EQ(boxes({}), 1);
    EXPECT_EQ(boxes({"--overlap", "0.65"}), 2);
    EXPECT_EQ(boxes({"--overlap", "0.05", "--lowest-score", "0"}), 1);
    EXPECT_EQ(boxes({"--overlap", "0", "--lowest-score", "0"}), 2);  // 0: the default
    EXPECT_EQ(boxes({"--lowest-score", "0"}), 2);
    EXPECT_EQ(boxes({"--aggregation", "nms"}), 1);
    EXPECT_EQ(boxes({"--aggregation", "nms", "--overlap", "0.65"}), 2);
    expect_refused(evaluate({"a.json", "b.json"}, {"--overlap", "1"}), 2,
                   "--overlap: expected a number from 0 to below 1, got '1'");
    expect_refused(evaluate({"a.json", "b.json"}, {"--lowest-score", "x"}), 2,
                   "--lowest-score: expected a number from 0 to below 1, got 'x'");
}

TEST_F(EvaluateDetections, ReportsItWhereThereIsNothingToFind) {
    write("annotations.json", R"({"images":[{"id":1}],"categories":[],"annotations":[]})");
    const json got = evaluated({"nothing.json"});
    EXPECT_TRUE(got["quality"].is_null());
    EXPECT_EQ(got["quality_reason"], "no annotated box is scored");
    EXPECT_NE(evaluate({"nothing.json"}).out.find("quality none"), std::string::npos);
}

TEST_F(EvaluateDetections, RejectsWhatDoesNotFit) {
    const std::vector<std::string> two{"nothing.json", "nothing.json"};
    write("stranger.json", R"([{"image_id":99,"category_id":1,"bbox":[0,0,1,1],"score":1}])");
    expect_refused(evaluate({"stranger.json"}), 4,
                   "'stranger.json': [0].image_id: expected the id of an image");
    expect_refused(evaluate({"absent.json"}), 4, "absent.json");
    expect_refused(evaluate({"annotations.json"}), 4, "expected a list");
    expect_refused(evaluate(two, {"--aggregation", "soft_vote"}), 2,
                   "--aggregation: expected wbf or nms, got 'soft_vote'");
    expect_refused(evaluate(two, {"--weights", "1"}), 2, "expected 2 numbers");
    expect_refused(evaluate({"nothing.json"}, {"--weights", "0"}), 2,
                   "--weights: expected a number above 0, got '0'");
    expect_refused(evaluate(two, {"--aggregation", "nms", "--weights", "1", "1"}), 2,
                   "--weights: expected with --aggregation wbf only");
    expect_refused(evaluate({"nothing.json"}, {"--labels", "l.npy"}), 2,
                   "expected --annotations with --detections, or --labels with --predictions");
    expect_refused(run({"evaluate"}), 2, "expected --annotations with --detections");
}

TEST_F(EvaluateDetections, RejectsHowToFuseASingleList) {
    for (const std::vector<std::string>& option : {std::vector<std::string>{"--aggregation", "nms"},
                                                   {"--weights", "3"},
                                                   {"--overlap", "0.5"},
                                                   {"--lowest-score", "0"}}) {
        expect_refused(evaluate({"detections.json"}, option), 2,
                       option[0] + ": expected with two files or more of --detections, got one");
    }
}

class EvaluatePredictions : public testing::Test {
protected:
    EvaluatePredictions() {
        write_labels({0, 1, 1, -1}, {4});
        // Member 0 has high probabilities, member 1 low ones; they differ on the second sample.
        write_rows("a.npy", {0.9F, 0.1F, 0.9F, 0.1F, 0.1F, 0.9F, 1, 0}, {4, 2});
        write_rows("b.npy", {0.6F, 0.4F, 0.4F, 0.6F, 0.4F, 0.6F, 1, 0}, {4, 2});
    }

    void write_labels(const std::vector<std::int32_t>& labels, const tensor::Shape& shape) const {
        storage::write_npy(folder_ / "labels.npy", labels, shape);
    }
    void write_rows(const std::string& name, const std::vector<float>& rows,
                    const tensor::Shape& shape) const {
        storage::write_npy(folder_ / name, rows, shape);
    }

    Outcome evaluate(const std::vector<std::string>& more) const {
        std::vector<std::string> words{"evaluate", "--labels", "labels.npy", "--predictions"};
        words.insert(words.end(), more.begin(), more.end());
        return run_in(folder_.path(), words);
    }

    TemporaryFolder folder_;
};

TEST_F(EvaluatePredictions, CountsEachAndTheVote) {
    const json soft = json::parse(evaluate({"a.npy", "b.npy", "--json"}).out);
    EXPECT_EQ(soft["samples"], 3);
    EXPECT_EQ(soft["aggregation"], "soft_vote");
    EXPECT_NEAR(soft["members"][0]["top_1"], 2.0 / 3, 1e-12);
    EXPECT_NEAR(soft["members"][1]["top_1"], 1, 1e-12);
    EXPECT_NEAR(soft["quality"], 2.0 / 3, 1e-12);
    const json majority = json::parse(
        evaluate({"a.npy", "b.npy", "b.npy", "--aggregation", "majority", "--json"}).out);
    EXPECT_NEAR(majority["quality"], 1, 1e-12);
    const Outcome one = evaluate({"b.npy"});
    EXPECT_EQ(one.exit_code, 0) << one.error;
    EXPECT_NE(one.out.find("3 samples, 2 classes, one model\nquality 1.0000  Top-1"),
              std::string::npos)
        << one.out;
}

TEST_F(EvaluatePredictions, RejectsWhatDoesNotFit) {
    write_rows("short.npy", {1, 0}, {1, 2});
    write_rows("wide.npy", std::vector<float>(12), {4, 3});
    expect_refused(evaluate({"short.npy"}), 4,
                   "'short.npy': expected float32 of shape (4, classes)");
    expect_refused(evaluate({"labels.npy"}), 4, "'labels.npy': expected float32 of shape");
    expect_refused(evaluate({"a.npy", "wide.npy"}), 4, "'wide.npy': expected 2 classes");
    expect_refused(evaluate({"a.npy", "--aggregation", "majority"}), 2,
                   "--aggregation: expected with two files or more of --predictions, got one");
    expect_refused(evaluate({"a.npy", "b.npy", "--aggregation", "wbf"}), 2,
                   "--aggregation: expected soft_vote or majority, got 'wbf'");
    expect_refused(evaluate({"a.npy", "--weights", "1"}), 2,
                   "--weights: expected with --detections");
    write_labels({0, 1, 2, 0}, {4});
    expect_refused(evaluate({"a.npy"}), 4, "'labels.npy': label 2 of sample 2: expected -1");
    write_labels({0, 1, 1, 0}, {2, 2});
    expect_refused(evaluate({"a.npy"}), 4, "'labels.npy': expected labels, int32 of one dimension");
}

}  // namespace
}  // namespace hpcai::cli
