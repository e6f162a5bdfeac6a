// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <hpcai/records/json.hpp>
#include <hpcai/report/summary.hpp>

#include "example_page.hpp"

namespace hpcai::report {
namespace {

std::size_t count_of(const ReadPage& page, const std::string& tag) {
    return static_cast<std::size_t>(std::ranges::count(page.tags, tag, &Tag::name));
}

TEST(Html, BeginsWithTheVerdictItsReasonsAndTheResultLine) {
    const RunRecord record = partial_record();
    const std::string text = squeezed(read_page(html(example_content(record))).text);
    const std::size_t verdict = text.find(" PARTIAL ");
    const std::size_t reason = text.find("1 of 2 groups: group 1 failed: rank 3 ended");
    const std::size_t line = text.find(squeezed(result_line(record)));
    const std::size_t flops = text.find("VFLOPS 36.0 GFLOPS 3.600e+10");
    ASSERT_NE(flops, std::string::npos) << text.substr(0, 2000);
    EXPECT_LT(verdict, reason);
    EXPECT_LT(reason, line);
    EXPECT_LT(line, flops);
}

TEST(Html, ReportsWhyARunIsInvalid) {
    const ReadPage lost = read_page(html(example_content(lost_record())));
    EXPECT_TRUE(has(lost, "No base model finished"));
    EXPECT_FALSE(has(lost, "broke the rules"));
    const ReadPage diverged = read_page(html(example_content(diverged_record())));
    EXPECT_TRUE(has(diverged, "broke the rules below"));
    EXPECT_TRUE(has(diverged, "2 conditions of docs/RULES.md (1 broken)"));
    EXPECT_TRUE(has(diverged, "3 workload.epochs 90 6 broken"));
    RunRecord unscored = lost_record();
    unscored.verdict.exit_code = ExitCode::invalid;
    const ReadPage page = read_page(html(example_content(unscored)));
    EXPECT_TRUE(has(page, "score of the run is not a number"));
    EXPECT_FALSE(has(page, "broke the rules"));
}

TEST(Html, ReportsThatARunOfClassMiniIsRankedWithOthers) {
    RunRecord record = example_record();
    record.verdict.rankable = true;
    EXPECT_TRUE(has(read_page(html(example_content(record))), "It can be ranked. Exit code 0."));
    record.workload.problem_class = "mini";
    EXPECT_TRUE(has(read_page(html(example_content(record))),
                    "It can be ranked as one of at least 3 runs. Exit code 0."));
    record.verdict.rankable = false;
    EXPECT_TRUE(has(read_page(html(example_content(record))), "It cannot be ranked. Exit code 0."));
}

TEST(Html, ReportsTheSubmissionAndWhatItLacks) {
    const ReadPage page = read_page(html(example_content(example_record())));
    EXPECT_TRUE(has(page, "Abacus <2>"));
    EXPECT_TRUE(has(page, "1 hardware 4 nodes, 8 accelerators each"));
    EXPECT_TRUE(has(page, "A ranking also needs framework."));
    RunRecord silent = example_record();
    silent.submission = {};
    EXPECT_FALSE(has(read_page(html(example_content(silent))), "Submission"));
}

/// Returns every number of `json` under a key of the scores and the quality, as the summary prints
/// it.
std::vector<std::string> printed_numbers(const nlohmann::json& json) {
    std::vector<std::string> numbers;
    for (const char* key : {"flops", "vflops"}) {
        numbers.push_back(fmt::format("{:.3e}", json["scores"][key].get<double>()));
    }
    numbers.push_back(fmt::format("{:.4f}", json["scores"]["penalty_coefficient"].get<double>()));
    const nlohmann::json& quality = json["quality"];
    for (const char* key :
         {"ensemble", "ensemble_majority", "members_mean", "out_of_bag", "target"}) {
        numbers.push_back(fmt::format("{:.4f}", quality[key].get<double>()));
    }
    for (const auto& member : quality["members"]) {
        if (!member.is_null()) numbers.push_back(fmt::format("{:.4f}", member.get<double>()));
    }
    for (const char* key : {"low", "high"}) {
        numbers.push_back(fmt::format("{:.4f}", quality["confidence_interval"][key].get<double>()));
    }
    for (const auto& group : json["work"]["groups"]) {
        if (group["flops"].is_null()) continue;
        numbers.push_back(fmt::format("{:.3e}", group["flops"].get<double>()));
        numbers.push_back(fmt::format("{:.2f}", group["training_seconds"].get<double>()));
        numbers.push_back(fmt::format("{:.2f}", group["images_per_second"].get<double>()));
    }
    return numbers;
}

TEST(Html, HasEveryScoreAndQualityOfTheRecord) {
    for (const RunRecord& record : {example_record(), partial_record(), diverged_record()}) {
        const ReadPage page = read_page(html(example_content(record)));
        for (const std::string& number :
             printed_numbers(nlohmann::json::parse(records::to_json(record)))) {
            EXPECT_TRUE(has(page, number)) << number;
        }
        for (const std::string& reason : record.verdict.reasons) {
            EXPECT_TRUE(has(page, reason)) << reason;
        }
        EXPECT_TRUE(has(page, std::string(word_of(record.verdict.status))));
    }
}

TEST(Html, StatesInWordsThatTheTargetWasMissedAndThatOneRankHasNoReplica) {
    RunRecord record = example_record();
    const std::string missed = "VFLOPS are below FLOPS, because the target was missed.";
    EXPECT_TRUE(has(read_page(html(example_content(record))), missed));
    EXPECT_TRUE(has(read_page(html(example_content(record))), "counted by Table 3 of the paper"));
    record.scores.penalty_coefficient = {1, ""};
    record.parallel.data_degree = 1;
    const ReadPage page = read_page(html(example_content(record)));
    EXPECT_FALSE(has(page, missed));
    EXPECT_TRUE(has(page, "no replica to compare"));
}

TEST(Html, ReportsWhatFailedAndThatThereIsNoMeter) {
    const RunRecord record = diverged_record();
    const ReadPage page = read_page(html(example_content(record)));
    EXPECT_TRUE(has(page, "1 of 2 groups failed"));
    EXPECT_TRUE(has(page, "Group 1: replica audit after step 4: optimizer state differs"));
    EXPECT_TRUE(has(page, "after step 4: optimizer state; rank 2 on node1, 3 on node1"));
    EXPECT_TRUE(has(page, "No meter: no energy meter."));
}

TEST(Html, PrintsTheEnergyThatWasMeasured) {
    RunRecord record = example_record();
    record.energy.source = "made-up meter";
    record.energy.method = "read now and then";
    record.energy.level = "no level";
    record.energy.joules = {12345, ""};
    record.energy.average_watts = {771.6, ""};
    record.energy.meters = {{"node<1>", "nvml:GPU-1", {12345, ""}},
                            {"node<1>", "rapl", {{}, "no powercap"}}};
    const ReadPage page = read_page(html(example_content(record)));
    EXPECT_TRUE(has(page, "made-up meter"));
    EXPECT_TRUE(has(page, "energy 1.234e+04\xC2\xA0J"));
    EXPECT_FALSE(has(page, "No meter"));
    for (const char* words :
         {"read now and then", "no level", "2001-02-03T04:05:07.250Z to 2001-02-03T04:05:23.250Z",
          "node<1>", "nvml:GPU-1", "no powercap"}) {
        EXPECT_TRUE(has(page, words)) << words;
    }
}

TEST(Html, NamesNoAlgorithmIfThereIsNoAllReduce) {
    RunRecord record = example_record();
    record.communication.backend = "none";
    const ReadPage page = read_page(html(example_content(record)));
    EXPECT_TRUE(has(page, "gradient all-reduces none payload per step"));
}

TEST(Html, PrintsWhatInterfacesCounted) {
    RunRecord record = example_record();
    record.communication.interfaces.push_back({"node2", "ib:mlx5_0/1", {{}, "is full"}, {0, ""}});
    const ReadPage page = read_page(html(example_content(record)));
    for (const char* words : {"net:eth0", "6.00 KiB", "2.00 KiB", "ib:mlx5_0/1", "is full"}) {
        EXPECT_TRUE(has(page, words)) << words;
    }
}

TEST(Html, ComparesTheSpeedOfARankWithItsCeiling) {
    RunRecord record = example_record();
    record.utilization.fraction = {0.375, ""};
    record.roofline.ceiling_flops = {7.2e10, ""};
    record.roofline.ceiling = "gemm 2048, forward";
    record.roofline.gemm_flops = {7.1e10, ""};
    record.roofline.model_convolution_flops = {6.1e10, ""};
    const ReadPage page = read_page(html(example_content(record)));
    for (const char* words :
         {"37.5", "7.200e+10", "7.100e+10", "6.100e+10", "gemm 2048, forward"}) {
        EXPECT_TRUE(has(page, words)) << words;
    }
    record.utilization.fraction = {std::nullopt, "run.roofline is off"};
    record.roofline.ceiling_flops = {std::nullopt, "run.roofline is off"};
    EXPECT_TRUE(has(read_page(html(example_content(record))), "run.roofline is off"));
}

TEST(Html, OfAResumedRunNamesTheLaunchesAndWhatTheTotalOmits) {
    RunRecord record = example_record();
    const std::string of_last = "start-up, staging, vote and total only the last one.";
    const ReadPage whole = read_page(html(example_content(record)));
    EXPECT_FALSE(has(whole, of_last));
    EXPECT_TRUE(has(whole, "rest 0.88\xC2\xA0s files such as the last checkpoint,"))
        << "20 - 1 - 0.5 - (16 + 1.5) - 0.125";
    record.work.groups[1].continuations = {{20, "2022-11-06T00:00:00Z"}};
    const ReadPage resumed = read_page(html(example_content(record)));
    EXPECT_TRUE(has(resumed, of_last));
    EXPECT_TRUE(has(resumed, "group at step by the launch of 1 20 2022-11-06T00:00:00Z"));
    EXPECT_FALSE(has(resumed, "files such as"));
}

TEST(Html, LabelsNoPositionBetweenTwoSteps) {
    const RunRecord record = example_record();
    const auto labels = std::string(
        "<div class=\"x\" aria-hidden=\"true\">"
        "<span class=\"first\" style=\"left:0.00%\">1</span>"
        "<span class=\"\" style=\"left:50.00%\">2</span>"
        "<span class=\"last\" style=\"left:100.00%\">3</span></div>");
    const std::string page = html({record, {example_steps(3, 16), example_steps(3, 12)}, {}, {}});
    const std::size_t first = page.find(labels);
    ASSERT_NE(first, std::string::npos) << "of the loss";
    EXPECT_NE(page.find(labels, first + 1), std::string::npos) << "of the step time";
}

TEST(Html, OfOneBaseModelNamesNoOthers) {
    RunRecord record = example_record();
    record.topology.groups = 1;
    record.work.groups.pop_back();
    const ReadPage page = read_page(html(example_content(record)));
    EXPECT_TRUE(has(page, "1 base model (resnet50_v1.5) trained alone, on 4 ranks of 1 node. It "));
    EXPECT_FALSE(has(page, "Their predictions"));
}

TEST(Html, NamesTheProgramOfTheLaunchOptions) {
    RunRecord record = example_record();
    record.environment["launcher"] = "--bind-to none";
    const ReadPage page = read_page(html(example_content(record)));
    EXPECT_TRUE(has(page, "options of mpirun --bind-to none"));
}

TEST(Html, WithoutStepsReportsItAndHasNoCurves) {
    const RunRecord record = example_record();
    const ReadPage with = read_page(html(example_content(record)));
    const ReadPage without = read_page(html({record, {{}, {}}, {}, {}}));
    EXPECT_TRUE(has(without, "There is no learning curve because there is no readable steps.csv"));
    EXPECT_FALSE(has(with, "There is no learning curve"));
    EXPECT_TRUE(has(with, "Training loss by step"));
    EXPECT_LT(count_of(without, "figure"), count_of(with, "figure"));
}

TEST(Html, OfStepsWithoutLossReportsIt) {
    const RunRecord record = example_record();
    PageContent content = example_content(record);
    for (auto& steps : content.steps) {
        for (StepRecord& step : steps) step.loss = PhaseSeconds::kUnknown;
    }
    EXPECT_TRUE(has(read_page(html(content)), "steps.csv have no loss."));
}

TEST(Html, ShowsWhyStepsCannotBeRead) {
    const RunRecord record = example_record();
    PageContent content = example_content(record);
    content.remarks = {"groups/1/steps.csv:3: the line does not end"};
    EXPECT_TRUE(has(read_page(html(content)), "groups/1/steps.csv:3: the line does not end"));
}

TEST(Html, DrawsTheStepsItIsGiven) {
    const RunRecord record = example_record();
    PageContent content = example_content(record);
    const std::string page = html(content);
    content.steps[1][5].loss = 17;
    const std::string other = html(content);
    EXPECT_NE(page, other);
    EXPECT_EQ(html(content), other) << "the same input gives the same bytes";
    // 0.25 of 2 seconds in a step; the other phases in proportion.
    const ReadPage read = read_page(page);
    EXPECT_TRUE(has(read, "0 phases of group 0 12.5 25.0 50.0 6.2 3.1 3.1 2000"));
}

TEST(Html, HasHeadersInEveryTableAndATitleInEveryPlot) {
    const RunRecord record = example_record();
    const ReadPage page = read_page(html(example_content(record)));
    for (std::size_t index = 0; index < page.tags.size(); ++index) {
        const Tag& tag = page.tags[index];
        const auto attribute = [&](const std::string& name) {
            const auto found = std::ranges::find(tag.attributes, name,
                                                 &std::pair<std::string, std::string>::first);
            return found == tag.attributes.end() ? "" : found->second;
        };
        if (tag.name == "th") {
            EXPECT_TRUE(attribute("scope") == "row" || attribute("scope") == "col");
        }
        if (tag.name == "svg" && attribute("aria-hidden") != "true") {
            EXPECT_EQ(attribute("role"), "img");
            EXPECT_EQ(page.tags[index + 1].name, "title");
        }
    }
    EXPECT_GE(count_of(page, "svg"), 10U);
}

TEST(Html, KeepsHostileTextsHarmless) {
    const std::string hostile =
        "</style><script>alert(1)</script>\"' onload=\"x\x01\x1b[2J&amp;\xff\xE2\x80\xAE<!--";
    RunRecord record = example_record();
    record.name = record.program_version = record.time.started_utc = hostile;
    record.verdict.reasons = {hostile};
    record.verdict.rules = {{1, hostile, hostile, hostile, false}};
    record.submission.system_name = record.submission.problem = hostile;
    record.workload.kind = record.workload.model = record.workload.precision = hostile;
    record.flops.convention = record.config.text = hostile;
    record.quality.confidence_interval.method = hostile;
    std::get<TopAccuracyRecord>(record.quality.metric).out_of_bag = {std::nullopt, hostile};
    record.parameters[0] = {hostile, hostile, hostile};
    record.environment[hostile] = hostile;
    record.invocations[0] = {hostile, hostile, hostile, hostile};
    record.energy.joules.reason = record.determinism.guarantee = hostile;
    record.communication.algorithm = record.parallel.mode = hostile;
    record.training_digest[0] = hostile;
    record.work.groups[0].failure = hostile;
    record.work.groups[0].audit = {1, 1, {hostile}, {{0, 0, hostile}}};
    for (PlaceRecord& place : record.topology.map) place.host = place.device = hostile;
    PageContent content = example_content(record);
    content.layers[0] = {hostile, hostile, hostile, -1, -1, -1};
    content.remarks = {hostile};
    const std::string text = html(content);
    const ReadPage page = read_page(text);  // this also finds scripts and attributes
    EXPECT_TRUE(has(page, "<script>alert(1)</script>\"' onload=\"x"));
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_EQ(text.find("\xE2\x80\xAE"), std::string::npos);
    EXPECT_EQ(text.find('\xff'), std::string::npos);
    EXPECT_EQ(count_of(page, "style"), 1U);
}

/// Returns `json` with null and a reason instead of each number that may be missing.
nlohmann::json without_numbers(const nlohmann::json& json) {
    nlohmann::json result = json;
    for (auto& [key, value] : json.items()) {
        if (value.is_object()) {
            result[key] = without_numbers(value);
        } else if (value.is_number_float()) {
            result[key] = nullptr;
            result[key + "_reason"] = "made up";
        } else if (value.is_array() && !value.empty() && value[0].is_number_float()) {
            for (auto& one : result[key]) one = nullptr;
            result[key + "_reason"] = std::vector<std::string>(value.size(), "made up");
        } else if (value.is_array()) {
            for (std::size_t index = 0; index < value.size(); ++index) {
                if (value[index].is_object()) result[key][index] = without_numbers(value[index]);
            }
        }
    }
    return result;
}

TEST(Html, OfARecordWithoutAnyNumberHasNoNan) {
    const nlohmann::json nothing =
        without_numbers(nlohmann::json::parse(records::to_json(example_record())));
    const RunRecord record = records::from_json<RunRecord>(nothing.dump());
    ASSERT_FALSE(record.quality.ensemble.value.has_value());
    ASSERT_TRUE(std::isnan(record.quality.target));
    PageContent content = example_content(record);
    for (StepRecord& step : content.steps[0]) {
        step.loss = PhaseSeconds::kUnknown;
        step.phases = {};
    }
    const std::string text = squeezed(read_page(html(content)).text);
    EXPECT_FALSE(std::regex_search(text, std::regex(R"((^|[ (>+-])(nan|inf)\b)"))) << text;
    EXPECT_NE(text.find("n/a made up"), std::string::npos);
}

TEST(Html, IsLegibleForTenThousandRanksAndAThousandGroups) {
    RunRecord record = example_record();
    record.topology = {10'000, 1000, 10, 1250, {}};
    record.work.groups.clear();
    record.quality.members.clear();
    record.training_digest.assign(1000, std::string(64, 'a'));
    for (int rank = 0; rank < 10'000; ++rank) {
        record.topology.map.push_back({rank, rank / 10, rank % 10, rank / 8, rank % 8, 16,
                                       "node-with-a-rather-long-name-" + std::to_string(rank / 8),
                                       "NVIDIA H100 80GB HBM3"});
    }
    PageContent content{record, {}, {}, {}};
    for (int group = 0; group < 1000; ++group) {
        record.work.groups.push_back(example_group(group, 10 + 0.001 * group));
        record.quality.members.push_back({0.7 + 0.00005 * group, ""});
        content.steps.push_back(example_steps(100, 10 + 0.001 * group));
    }
    record.work.groups[777].failure = "made up";
    const std::string text = html(content);
    const ReadPage page = read_page(text);
    EXPECT_LT(text.size(), 3'000'000U);
    EXPECT_TRUE(has(page, "1 of 1000 groups failed"));
    EXPECT_TRUE(has(page, "Group 777: made up"));
    EXPECT_TRUE(has(page, "median of the groups"));
    EXPECT_TRUE(has(page, "988 more rows"));
    EXPECT_TRUE(has(page,
                    "0\xE2\x80\x93"
                    "9 node-with-a-rather-long-name-0, "
                    "node-with-a-rather-long-name-1 10 \xC3\x97 NVIDIA H100 80GB HBM3"));
}

}  // namespace
}  // namespace hpcai::report
