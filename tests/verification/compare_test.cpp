// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <sstream>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <hpcai/base/text.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/csv.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/npy.hpp>
#include <hpcai/verification/compare.hpp>
#include <hpcai/verification/repetitions.hpp>

#include "report/example_record.hpp"
#include "storage/temporary_folder.hpp"

namespace hpcai::verification {
namespace {

namespace fs = std::filesystem;

/// Two results of two groups on 40 test samples of two classes.
class Compare : public testing::Test {
protected:
    /// Stores a result whose steps take `seconds` and whose ensemble is right on the first `right`
    /// samples. `change` is applied to the record only.
    void store(const std::string& name, double seconds, int right,
               const std::function<void(RunRecord&)>& change = {}) {
        const fs::path folder = folder_ / name;
        fs::create_directories(folder / "evaluation");
        config::Config config;
        config.workload.classes = 2;
        config.training.learning_rate = seconds;
        RunRecord record = report::example_record();
        record.name = name;
        record.config.text = config::to_json(config);
        record.quality.ensemble.value = right / 40.0;
        record.quality.labels_sha256 = "the same";
        record.environment["compiler"] = name;
        record.time.training_seconds.value = 30 * seconds;
        record.throughput.images_per_second.value = 480 / (30 * seconds);
        record.scores.flops.value = 480 * 3e9 / (30 * seconds);
        record.scores.vflops.value = *record.scores.flops.value * right / 40;
        if (change) change(record);
        storage::write_file_durably(folder / "result.json", records::to_json(record));
        std::vector<StepRecord> steps;
        for (int step = 0; step < 30; ++step) {
            steps.push_back({.step = step, .samples = 8, .end_seconds = seconds * (step + 1)});
        }
        for (const char* group : {"groups/0", "groups/1"}) {
            fs::create_directories(folder / group);
            storage::write_file_durably(folder / group / "steps.csv", report::steps_to_csv(steps));
        }
        const std::vector<std::int32_t> labels(40, 1);
        std::vector<float> said(80, 0.5F);
        for (std::size_t sample = 0; sample < 40; ++sample) {
            said[2 * sample + 1] = static_cast<int>(sample) < right ? 0.75F : 0.25F;
        }
        storage::write_npy(folder / "evaluation/labels.npy", std::span<const std::int32_t>(labels),
                           {40});
        storage::write_npy(folder / "evaluation/ensemble.npy", std::span<const float>(said),
                           {40, 2});
    }

    MetricComparison row_of(const std::string& key) const {
        const Comparison all = compare(folder_ / "a", folder_ / "b");
        const auto row = std::ranges::find(all.metrics, key, &MetricComparison::key);
        EXPECT_NE(row, all.metrics.end()) << key;
        return *row;
    }

    Judgement judgement(const std::string& key) const { return row_of(key).judgement; }

    void seal(const std::string& name) const { storage::write_manifest(folder_ / name); }

    storage::TemporaryFolder folder_;
};

TEST_F(Compare, NamesTheSettingsAndFactsThatDiffer) {
    store("a", 1, 30);
    store("b", 2, 30);
    const Comparison all = compare(folder_ / "a", folder_ / "b");
    ASSERT_EQ(all.settings.size(), 1U);
    EXPECT_EQ(all.settings[0].key, "training.learning_rate");
    EXPECT_EQ(all.settings[0].second, "2");
    ASSERT_EQ(all.environment.size(), 1U);
    EXPECT_EQ(all.environment[0].key, "compiler");
    EXPECT_NE(to_text(all).find("training.learning_rate"), std::string::npos);
    std::istringstream lines(to_text(all));
    std::string line;
    std::getline(lines, line);  // has the paths
    while (std::getline(lines, line)) EXPECT_LE(line.size(), 80U) << line;
    EXPECT_NE(to_text(all).find("SLOWER\n    the time ratio is "), std::string::npos)
        << to_text(all);
    EXPECT_NE(to_json(all).find("\"judgement\": \"SLOWER\""), std::string::npos);
}

TEST(CompareText, ShowsLongValuesFromShortlyBeforeTheyDiffer) {
    const std::string same = "hpcai500 run --config weather.yaml --set workload.image_width=192 ";
    const Comparison all{"a", "b", {}, {{"command_line", same + "--set run.seed=1", same}}, {}, {}};
    EXPECT_NE(to_text(all).find("...oad.image_width=192 --set run.seed=1 ->"), std::string::npos)
        << to_text(all);
    const Comparison brief{"a", "b", {}, {{"program", "hpcai500 0.1.0", "hpcai500 0.1.1"}}, {}, {}};
    EXPECT_NE(to_text(brief).find(" hpcai500 0.1.0 -> hpcai500 0.1.1\n"), std::string::npos);
}

TEST_F(Compare, WarnsOfDifferentWork) {
    store("a", 1, 30);
    store("b", 1, 30, [](RunRecord& record) {
        config::Config config = config::parse(record.config.text, "config", {});
        config.workload.epochs = 7;
        record.config.text = config::to_json(config);
        record.topology.groups = 3;
        record.workload.training_samples = 480;
    });
    store("c", 1, 30, [](RunRecord& record) { record.topology.ranks = 99; });
    for (const char* name : {"a", "b", "c"}) seal(name);
    EXPECT_TRUE(compare(folder_ / "a", folder_ / "c").warnings.empty());
    const RunRecord record = report::example_record();
    EXPECT_EQ(compare(folder_ / "a", folder_ / "b").warnings,
              std::vector<std::string>{fmt::format(
                  "the work differs, which alone changes metrics: workload.epochs 90 -> 7, "
                  "base models {} -> 3, training samples {} -> 480",
                  record.topology.groups, record.workload.training_samples)});
}

TEST_F(Compare, NamesTheRunsThatItCompares) {
    store("a", 1, 30);
    store("s/repetition_1", 1, 30);
    store("s/repetition_2", 2, 30);
    RepetitionsRecord series{.requested = 2};
    for (const double vflops : {2.0, 1.0})
        series.repetitions.push_back({.directory = repetition_name(vflops == 2 ? 1 : 2),
                                      .counted = true,
                                      .vflops = {vflops, ""}});
    storage::write_file_durably(folder_ / "s" / kRepetitionsName, records::to_json(series));
    const std::string run = (folder_ / "s/repetition_2").string();
    EXPECT_TRUE(to_text(compare(folder_ / "a", folder_ / "s"))
                    .starts_with("a in " + (folder_ / "a").string() + " -> s/repetition_2 in " +
                                 run + " (the median of 2 runs)\n"));
}

TEST_F(Compare, JudgesSpeedByTheStepsAndTheirWork) {
    store("a", 1, 30);
    store("b", 2, 30);
    EXPECT_EQ(judgement("throughput.images_per_second"), Judgement::slower);
    EXPECT_EQ(judgement("time.training_seconds"), Judgement::slower);
    EXPECT_EQ(judgement("quality.ensemble"), Judgement::same);
    EXPECT_EQ(judgement("scores.vflops"), Judgement::worse);
    store("b", 0.5, 30);
    EXPECT_EQ(judgement("scores.flops"), Judgement::faster);
    store("b", 1.01, 30);
    EXPECT_EQ(judgement("scores.flops"), Judgement::same);
    fs::remove(folder_ / "b/groups/1/steps.csv");
    EXPECT_EQ(judgement("scores.flops"), Judgement::unclear);
}

TEST_F(Compare, StatesOnceWhatTheIntervalsThatDecideDoNotCover) {
    const std::string note = "\ntime ratios cover the spread within these runs, not between runs";
    store("a", 1, 30);
    store("b", 2, 30);
    const std::string text = to_text(compare(folder_ / "a", folder_ / "b"));
    ASSERT_NE(text.find(note), std::string::npos) << text;
    EXPECT_EQ(text.find(note), text.rfind(note));
    fs::remove(folder_ / "b/groups/1/steps.csv");
    EXPECT_EQ(to_text(compare(folder_ / "a", folder_ / "b")).find(note), std::string::npos);
}

TEST_F(Compare, IsUnclearIfTheResultsContradictTheirSteps) {
    store("a", 1, 30);
    store("b", 1, 30, [](RunRecord& record) { *record.scores.flops.value *= 8.66; });
    const MetricComparison flops = row_of("scores.flops");
    EXPECT_EQ(flops.judgement, Judgement::unclear);
    EXPECT_TRUE(flops.why.ends_with(", but the stored results give 0.1155")) << flops.why;
    EXPECT_EQ(judgement("time.training_seconds"), Judgement::same);
    store("b", 1, 30, [](RunRecord& record) { *record.time.training_seconds.value *= 1.01; });
    EXPECT_EQ(judgement("time.training_seconds"), Judgement::unclear);
    EXPECT_EQ(judgement("scores.flops"), Judgement::same);
    store("b", 1, 30, [](RunRecord& record) { *record.scores.vflops.value *= 1.1; });
    EXPECT_EQ(judgement("scores.vflops"), Judgement::unclear);
    store("b", 0.5, 30, [](RunRecord& record) { *record.scores.vflops.value /= 4; });
    EXPECT_EQ(judgement("scores.vflops"), Judgement::unclear) << "faster, with fewer VFLOPS";
    store("b", 1, 30, [](RunRecord& record) { record.scores.flops = {{}, "none"}; });
    EXPECT_EQ(row_of("scores.flops").why, "one result does not have this metric");
    EXPECT_EQ(judgement("scores.flops"), Judgement::unclear);
}

TEST_F(Compare, KnowsThatACountHasNoSpread) {
    const std::string key = "communication.sent_bytes_per_step";
    const auto sending = [](const Quantity& bytes) {
        return [bytes](RunRecord& record) { record.communication.sent_bytes_per_step = bytes; };
    };
    store("a", 1, 30, sending({64, ""}));
    store("b", 1, 30, sending({64, ""}));
    EXPECT_EQ(judgement(key), Judgement::same);
    store("b", 1, 30, sending({65, ""}));
    EXPECT_EQ(word_of(judgement(key)), "MORE");
    store("b", 1, 30, sending({0, ""}));
    EXPECT_EQ(word_of(judgement(key)), "LESS");
    store("b", 1, 30, sending({std::nullopt, "not counted"}));
    EXPECT_EQ(word_of(judgement(key)), "UNCLEAR");
    EXPECT_EQ(row_of(key).why, "one result does not have this metric");
}

TEST_F(Compare, WarnsOfAResultThatDiffersFromItsManifest) {
    store("a", 1, 30);
    store("b", 1, 30);
    seal("a");
    seal("b");
    EXPECT_EQ(compare(folder_ / "a", folder_ / "b").warnings, std::vector<std::string>());
    store("b", 1, 30, [](RunRecord& record) { *record.scores.flops.value *= 2; });
    const Comparison all = compare(folder_ / "a", folder_ / "b");
    ASSERT_EQ(all.warnings.size(), 1U);
    EXPECT_TRUE(all.warnings[0].starts_with(
        (folder_ / "b").string() +
        ": does not agree with its manifest (result.json: has the SHA-256 "))
        << all.warnings[0];
    EXPECT_NE(to_text(all).find("\n" + wrap("warning: " + all.warnings[0], 4) + "\n"),
              std::string::npos);
    EXPECT_NE(to_json(all).find("\"warnings\": [\n"), std::string::npos);
}

TEST_F(Compare, IsSameForEqualStepsHoweverUneven) {
    std::vector<StepRecord> steps;
    double end = 0;
    for (int step = 0; step < 30; ++step) {
        end += 1 + step * 7 % 5;
        steps.push_back({.step = step, .samples = 8, .end_seconds = end});
    }
    for (const char* name : {"a", "b"}) {
        store(name, 1, 30);
        for (const char* group : {"groups/0", "groups/1"}) {
            storage::write_file_durably(folder_ / name / group / "steps.csv",
                                        report::steps_to_csv(steps));
        }
    }
    EXPECT_EQ(judgement("time.training_seconds"), Judgement::same);
    EXPECT_EQ(judgement("scores.flops"), Judgement::same);
}

TEST_F(Compare, RejectsArraysOfAnotherType) {
    const std::vector<float> floats(40, 1);
    const std::vector<std::int32_t> integers(80, 1);
    store("a", 1, 30);
    store("b", 1, 31);
    const auto refusal = [&] {
        return storage::error_of(ExitCode::data, [&] { compare(folder_ / "a", folder_ / "b"); });
    };
    storage::write_npy(folder_ / "b/evaluation/ensemble.npy",
                       std::span<const std::int32_t>(integers), {40, 2});
    EXPECT_EQ(refusal(), "ensemble.npy: has int32 (40, 2); must have fp32 (40, 2)");
    storage::write_npy(folder_ / "a/evaluation/labels.npy", std::span<const float>(floats), {40});
    EXPECT_EQ(refusal(), "labels.npy: has fp32 (40); must have int32 (40)");
    storage::write_npy(folder_ / "a/evaluation/labels.npy", std::span<const std::int32_t>(), {0});
    EXPECT_EQ(refusal(), "labels.npy: has 0 rows; must have 1 per sample");
}

TEST_F(Compare, JudgesQualityByTheSamplesThatOnlyOneClassifiesCorrectly) {
    store("a", 1, 20);
    store("b", 1, 21);
    EXPECT_EQ(judgement("quality.ensemble"), Judgement::unclear) << "one sample may be chance";
    EXPECT_EQ(judgement("scores.vflops"), Judgement::unclear);
    store("b", 1, 35);
    EXPECT_EQ(judgement("quality.ensemble"), Judgement::better);
    EXPECT_EQ(judgement("scores.vflops"), Judgement::better);
    store("b", 1, 5);
    EXPECT_EQ(judgement("quality.ensemble"), Judgement::worse);
}

TEST_F(Compare, RejectsADirectoryWithoutAResult) {
    store("a", 1, 20);
    EXPECT_THROW(compare(folder_ / "a", folder_ / "nowhere"), Error);
}

}  // namespace
}  // namespace hpcai::verification
