// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/records/json.hpp>
#include <hpcai/report/summary.hpp>

#include "example_record.hpp"
#include "golden.hpp"

namespace hpcai::report {
namespace {

using nlohmann::json;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string refusal_of(const std::string& text) {
    try {
        records::from_json<RunRecord>(text, "r.json");
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::data);
        return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
}

/// Returns the message of from_json for the example after `change`.
std::string refusal_after(const std::function<void(json&)>& change) {
    json in = json::parse(records::to_json(example_record()));
    change(in);
    return refusal_of(in.dump());
}

TEST(ResultJson, OfTheExamplesIsAsAgreed) {
    expect_golden("valid.json", records::to_json(example_record()));
    expect_golden("partial.json", records::to_json(partial_record()));
    expect_golden("diverged.json", records::to_json(diverged_record()));
}

TEST(ResultJson, ComesBackAsTheSameRecord) {
    EXPECT_EQ(records::from_json<RunRecord>(records::to_json(example_record())), example_record());
    const std::string partial = records::to_json(partial_record());
    EXPECT_EQ(records::to_json(records::from_json<RunRecord>(partial)), partial);
    EXPECT_EQ(
        records::from_json<RunRecord>(records::to_json(diverged_record())).work.groups[1].audit,
        diverged_record().work.groups[1].audit);
    const std::string lost = records::to_json(lost_record());
    EXPECT_EQ(records::to_json(records::from_json<RunRecord>(lost)), lost);
    EXPECT_EQ(records::from_json<RunRecord>(partial).quality.members[1].reason,
              "group 1 failed: rank 3 ended");
}

TEST(ResultJson, HasTheKeysOthersRelyOn) {
    const json in = json::parse(records::to_json(example_record()));
    for (const char* pointer : {"/schema",
                                "/verdict/status",
                                "/verdict/reasons",
                                "/verdict/exit_code",
                                "/verdict/rankable",
                                "/topology/ranks",
                                "/topology/groups",
                                "/topology/degree",
                                "/topology/nodes",
                                "/topology/map/3/host",
                                "/workload",
                                "/config",
                                "/flops/forward_per_sample",
                                "/flops/training_per_sample",
                                "/flops/convention",
                                "/flops/ledgers",
                                "/work/samples_trained",
                                "/work/iterations",
                                "/work/groups/1",
                                "/work/groups/1/audit/passed",
                                "/determinism/guarantee",
                                "/time/staging_seconds",
                                "/time/training_seconds",
                                "/time/epoch_seconds",
                                "/throughput/images_per_second",
                                "/throughput/per_rank",
                                "/scores/flops",
                                "/scores/vflops",
                                "/scores/penalty_coefficient",
                                "/scores/vflops_per_watt",
                                "/quality/metric",
                                "/quality/target",
                                "/quality/exponent",
                                "/quality/ensemble",
                                "/quality/members/1",
                                "/quality/members_mean",
                                "/quality/out_of_bag",
                                "/quality/confidence_interval",
                                "/communication",
                                "/energy",
                                "/environment",
                                "/invocations/1/host",
                                "/training_digest/1"}) {
        EXPECT_TRUE(in.contains(json::json_pointer(pointer))) << pointer;
    }
    EXPECT_EQ(in["schema"], "hpcai500-result/5");
}

TEST(ResultJson, WritesNullAndAReasonForWhatIsNoNumber) {
    RunRecord record = example_record();
    record.scores.flops.value = kNan;
    record.scores.vflops.value = std::numeric_limits<double>::infinity();
    record.scores.penalty_coefficient = {};
    record.quality.target = kNan;
    record.time.epoch_seconds[1] = kNan;
    const std::string text = records::to_json(record);
    const json in = json::parse(text);
    EXPECT_TRUE(in["scores"]["flops"].is_null());
    EXPECT_EQ(in["scores"]["flops_reason"], "not a finite number");
    EXPECT_TRUE(in["scores"]["vflops"].is_null());
    EXPECT_EQ(in["scores"]["penalty_coefficient_reason"], "not measured");
    EXPECT_EQ(in["scores"]["vflops_per_watt_reason"], "no energy meter");
    EXPECT_TRUE(in["quality"]["target"].is_null());
    EXPECT_TRUE(in["time"]["epoch_seconds"][1].is_null());
    EXPECT_EQ(text.find("nan"), std::string::npos);
    const RunRecord back = records::from_json<RunRecord>(text);
    EXPECT_TRUE(std::isnan(back.quality.target));
    EXPECT_EQ(back.scores.flops.value, std::nullopt);
}

TEST(ResultJson, KeepsTextsThatAreHardToQuote) {
    RunRecord record = example_record();
    record.name = "a\"b\\c\n\t\x01 \xc3\xa9";
    EXPECT_EQ(records::from_json<RunRecord>(records::to_json(record)).name, record.name);
    record.name = "not \xff UTF-8";
    EXPECT_EQ(records::from_json<RunRecord>(records::to_json(record)).name,
              "not \xef\xbf\xbd UTF-8");
}

TEST(ResultJson, RejectsAnotherSchemaBeforeAnythingElse) {
    EXPECT_NE(refusal_of(R"({"schema":"hpcai500-result/1"})").find("hpcai500-result/5"),
              std::string::npos);
    refusal_of("{}");
    refusal_of("[]");
    refusal_of("");
    refusal_of("{");
}

TEST(ResultJson, QuotesLittleOfATextThatWasCut) {
    RunRecord record = example_record();
    record.name = std::string(5000, 'c');
    std::string text = records::to_json(record);
    text.resize(text.find("cccc") + 4000);
    const std::string refusal = refusal_of(text);
    EXPECT_TRUE(refusal.starts_with("'r.json' is not valid JSON: ")) << refusal;
    EXPECT_NE(refusal.find("missing closing quote"), std::string::npos) << refusal;
    EXPECT_LT(refusal.size(), 300U);
}

TEST(ResultJson, HasTheConfigurationAsAnObject) {
    const std::string text = records::to_json(example_record());
    EXPECT_EQ(json::parse(text)["config"]["run"]["name"], "example");
    EXPECT_NE(refusal_after([](json& in) {
                  in["config"] = "run:\n";
              }).find("config: expected an object, got \"run:\\n\""),
              std::string::npos);
}

TEST(ResultJson, NamesTheKeyThatIsWrong) {
    const std::vector<std::pair<std::string, std::function<void(json&)>>> changes{
        {"scores.flops:", [](json& in) { in["scores"].erase("flops"); }},
        {"scores.flops:", [](json& in) { in["scores"]["flops"] = "1"; }},
        {"scores.flops_reason:", [](json& in) { in["scores"]["flops"] = nullptr; }},
        {"scores:", [](json& in) { in["scores"] = 1; }},
        {"work.groups[1].ranks:", [](json& in) { in["work"]["groups"][1]["ranks"] = 1.5; }},
        {"work.groups[1].ranks:", [](json& in) { in["work"]["groups"][1]["ranks"] = 1LL << 40; }},
        {"work.groups[1].hosts[0]:", [](json& in) { in["work"]["groups"][1]["hosts"][0] = 1; }},
        {"work.groups:", [](json& in) { in["work"]["groups"] = json::object(); }},
        {"workload.seed:", [](json& in) { in["workload"]["seed"] = -1; }},
        {"quality.members:", [](json& in) { in["quality"]["members"].push_back(0.5); }},
        {"quality.members:", [](json& in) { in["quality"]["members"] = 0.5; }},
        {"quality.metric: expected one of top_1_accuracy, coco_ap50, mean_iou",
         [](json& in) { in["quality"]["metric"] = "bleu"; }},
        {"quality.metric:", [](json& in) { in["quality"].erase("metric"); }},
        {"quality.out_of_bag:", [](json& in) { in["quality"].erase("out_of_bag"); }},
        {"quality.ensemble_pixel_accuracy:",
         [](json& in) { in["quality"]["metric"] = "mean_iou"; }},
        {"quality.members_reason:", [](json& in) { in["quality"]["members"][0] = nullptr; }},
        {"training_digest:", [](json& in) { in["training_digest"] = json::array(); }},
        {"environment.mpi:", [](json& in) { in["environment"]["mpi"] = 4; }},
        {"verdict.rankable:", [](json& in) { in["verdict"]["rankable"] = 1; }},
        {"verdict.status:", [](json& in) { in["verdict"]["status"] = "valid"; }},
        {"verdict.exit_code:", [](json& in) { in["verdict"]["exit_code"] = 11; }},
        {"verdict.exit_code:", [](json& in) { in["verdict"]["exit_code"] = 9; }},
        {"verdict.exit_code:", [](json& in) { in["verdict"]["status"] = "INVALID"; }},
        {"verdict.exit_code:", [](json& in) { in["verdict"]["status"] = "PARTIAL"; }},
    };
    for (const auto& [key, change] : changes) {
        const std::string message = refusal_after(change);
        EXPECT_NE(message.find("'r.json': " + key), std::string::npos) << key << " | " << message;
    }
}

TEST(ResultJson, SurvivesMutations) {
    const std::string text = records::to_json(partial_record());
    std::uint64_t state = 3;
    int refused = 0;
    for (int round = 0; round < 500; ++round) {
        std::string hostile = text;
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        hostile[(state >> 40) % hostile.size()] = static_cast<char>(state >> 33);
        try {
            summary(records::from_json<RunRecord>(hostile), "none");
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::data);
            ++refused;
        }
    }
    EXPECT_GT(refused, 100);
}

TEST(GroupJson, HasTheReadingsOfItsCountersAndTakesThemBack) {
    GroupResult result;
    result.counters = {
        {"node1", "nvml:GPU-1", "J", "", {{1667656989.25, 1e6}, {1667656990.5, 2e6}}},
        {"node1", "rapl", "J", "no powercap", {}}};
    EXPECT_EQ(records::from_json<GroupResult>(records::to_json(result)).counters, result.counters);
}

TEST(GroupJson, IsRejectedWhereReadingsAreNoneOrGoBack) {
    GroupResult result;
    result.counters = {{"node1", "nvml:GPU-1", "J", "", {{10, 5}, {11, 6}}}};
    const auto refusal_after = [&](const char* pointer, const json& value) -> std::string {
        json in = json::parse(records::to_json(result));
        in[json::json_pointer(pointer)] = value;
        try {
            records::from_json<GroupResult>(in.dump(), "r.json");
        } catch (const Error& error) {
            return error.what();
        }
        return "nothing was thrown";
    };
    struct Case {
        const char* pointer;
        json value;
    };
    const std::vector<Case> cases{{"/counters/0/readings/1/utc_seconds", 9.5},
                                  {"/counters/0/readings/0/utc_seconds", -1},
                                  {"/counters/0/readings/1/utc_seconds", 1e300},
                                  {"/counters/0/readings/1/utc_seconds", nullptr},
                                  {"/counters/0/readings/1/value", 4},
                                  {"/counters/0/readings/0/value", nullptr},
                                  {"/counters/0/readings/0/value", -1}};
    for (const Case& one : cases) {
        const std::string refusal = refusal_after(one.pointer, one.value);
        EXPECT_NE(refusal.find("counters[0].readings["), std::string::npos)
            << one.pointer << ": " << refusal;
    }
}

}  // namespace
}  // namespace hpcai::report
