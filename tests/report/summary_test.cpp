// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <regex>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/report/summary.hpp>

#include "example_record.hpp"
#include "golden.hpp"

namespace hpcai::report {
namespace {

constexpr const char* kManifest =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::vector<std::string> summary_lines(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

/// Returns the summary with one line per entry.
std::string unwrapped_summary(const RunRecord& record) {
    return std::regex_replace(summary(record, kManifest), std::regex("\n {22}"), " ");
}

TEST(Summary, OfTheExamplesIsAsAgreed) {
    expect_golden("valid.txt", summary(example_record(), kManifest));
    expect_golden("partial.txt", summary(partial_record(), kManifest));
    expect_golden("lost.txt", summary(lost_record(), kManifest));
    expect_golden("diverged.txt", summary(diverged_record(), kManifest));
}

TEST(Summary, EndsWithTheResultLineOfTheInterface) {
    RunRecord record = example_record();
    record.scores.flops.value = 1.2341e12;
    record.scores.vflops.value = 1.1979e12;
    record.quality.ensemble.value = 0.75831;
    const std::string expected =
        "RESULT VALID  workload=image_classification M=2 P=2 FLOPS=1.234e+12 VFLOPS=1.198e+12 "
        "quality=0.7583 target=0.7630";
    EXPECT_EQ(result_line(record), expected);
    EXPECT_EQ(summary_lines(summary(record, kManifest)).back(),
              expected + " manifest=" + kManifest);
}

TEST(Summary, HasTheResultLineAlsoAsJson) {
    RunRecord record = example_record();
    record.workload.kind = "extreme_weather";
    record.scores.flops.value = 1234567890123.5;
    record.scores.vflops = {std::nullopt, "no target"};
    record.quality.ensemble.value = 0.75;
    EXPECT_EQ(result_json(record, "abc").dump(),
              R"({"status":"VALID","workload":"extreme_weather","M":2,"P":2,)"
              R"("FLOPS":1234567890123.5,"VFLOPS":null,"quality":0.75,"target":0.763,)"
              R"("manifest":"abc"})");
}

TEST(Summary, StatesWhetherTheTargetWasReachedAndTheDigitsOfASmallPenalty) {
    RunRecord record = example_record();
    record.quality.ensemble.value = record.quality.target;
    record.scores.penalty_coefficient.value = 1.25e-6;
    const std::string text = summary(record, kManifest);
    EXPECT_NE(text.find("\ntarget              : 0.7630, reached\n"), std::string::npos) << text;
    EXPECT_NE(text.find("\npenalty coefficient : 1.250e-06 = "), std::string::npos) << text;
    for (const auto& [penalty, shown] :
         {std::pair{999.94, "999.9"}, {999.96, "1000"}, {3125, "3125"}}) {
        record.scores.penalty_coefficient.value = penalty;
        EXPECT_NE(summary(record, kManifest).find(fmt::format("coefficient : {} = ", shown)),
                  std::string::npos);
    }
    record.quality.ensemble.value = 0.75;
    EXPECT_NE(summary(record, kManifest).find(": 0.7630, missed by 0.013\n"), std::string::npos);
}

TEST(Summary, HasTheDigitsOfATinyScore) {
    RunRecord record = example_record();
    record.scores.vflops_interval.low.value = 0;
    record.scores.vflops_interval.high.value = 3.613e-16;
    EXPECT_NE(summary(record, kManifest).find(": 0 FLOPS to 3.613e-16 FLOPS ("), std::string::npos);
}

TEST(Summary, PutsEachReasonOnItsLineAboveTheResult) {
    RunRecord record = example_record();
    record.verdict = {Status::custom, {"first", "second"}, ExitCode::ok, false};
    const auto lines = summary_lines(summary(record, kManifest));
    ASSERT_GT(lines.size(), 3U);
    EXPECT_EQ(lines[lines.size() - 3], "reason: first");
    EXPECT_EQ(lines[lines.size() - 2], "reason: second");
    EXPECT_EQ(lines.back().rfind("RESULT CUSTOM  workload=", 0), 0U);
}

TEST(Summary, DoesNotLetATextFakeALine) {
    RunRecord record = example_record();
    record.name = "x\nRESULT VALID  workload=fake";
    record.verdict.reasons = {"y\r\nRESULT VALID  workload=fake\x1b[2J"};
    record.parameters[0].value = "2\nRESULT VALID";
    int results = 0;
    for (const std::string& line : summary_lines(summary(record, kManifest))) {
        results += line.rfind("RESULT", 0) == 0;
        EXPECT_EQ(line.find('\x1b'), std::string::npos);
    }
    EXPECT_EQ(results, 1);
}

TEST(Summary, HasTheEnergyThatWasMeasured) {
    RunRecord record = example_record();
    record.energy.source = "NVML";
    record.energy.joules = {12345, ""};
    record.energy.average_watts = {771.6, ""};
    record.scores.vflops_per_watt = {46.66e6, ""};
    EXPECT_NE(unwrapped_summary(record).find(
                  "energy              : 1.234e+04 J, 771.6 W by NVML (not whole nodes); "
                  "VFLOPS per watt: 46.7 MFLOPS\n"),
              std::string::npos)
        << unwrapped_summary(record);
}

TEST(Summary, NamesTheFewWorstOfTheGpusThatWereSlowedOrHadErrors) {
    RunRecord record = example_record();
    record.work.groups[0].device_health = {
        {0, "node0", "GPU-0", {"sw_power_cap"}, {0.125, ""}, {0, ""}, {1, ""}, {}},
        {1, "node\n0", "GPU-1", {"hw_slowdown", "sw_power_cap"}, {1, ""}, {0, ""}, {2, ""}, {79}}};
    const std::string text = unwrapped_summary(record);
    EXPECT_NE(
        text.find("GPU with errors     : rank 0 on node0, 1 uncorrected memory error\n"
                  "GPU with errors     : rank 1 on node 0, 2 uncorrected memory errors, Xid 79\n"
                  "GPU slowed          : rank 1 on node 0, hw_slowdown and sw_power_cap in "
                  "100 % of the readings\n"
                  "GPU slowed          : rank 3 on node1, hw_thermal_slowdown in 41 % of the "
                  "readings\n"
                  "GPU slowed          : rank 0 on node0, sw_power_cap in 12 % of the readings\n"),
        std::string::npos)
        << text;
    record.work.groups[0].device_health.push_back(record.work.groups[0].device_health[0]);
    EXPECT_NE(unwrapped_summary(record).find("\nGPU slowed          : 1 more\n"),
              std::string::npos);
}

TEST(Summary, CountsTheXidsOfAGpuAfterTheFirstFour) {
    RunRecord record = example_record();
    const Quantity unknown{std::nullopt, "made up"};
    record.work.groups[0].device_health = {
        {0, "node0", "GPU-0", {}, unknown, unknown, unknown, {13, 31, 43, 45, 79, 79}}};
    EXPECT_NE(unwrapped_summary(record).find(
                  "GPU with errors     : rank 0 on node0, Xid 13, Xid 31, Xid 43, Xid 45, 2 "
                  "more\n"),
              std::string::npos);
}

TEST(Summary, ReportsWhereAGroupResumed) {
    RunRecord record = example_record();
    record.work.groups[1].continuations = {{4, "2022-11-06T00:00:00Z"}};
    EXPECT_NE(unwrapped_summary(record).find(
                  "group 1 resumed     : at step 4, by the launch of 2022-11-06T00:00:00Z\n"),
              std::string::npos)
        << unwrapped_summary(record);
}

TEST(Summary, ReportsThatAResumedGroupBeganAgain) {
    RunRecord record = example_record();
    record.work.groups[1].continuations = {{0, "2022-11-06T00:00:00Z"}};
    EXPECT_NE(
        summary(record, "")
            .find(
                "group 1 resumed     : from the beginning, by the launch of 2022-11-06T00:00:00Z"),
        std::string::npos);
}

TEST(Summary, FitsIntoEightyColumnsExceptReasonsAndTheLastLine) {
    RunRecord record = example_record();
    record.work.groups[0].device_health = {{0,
                                            "a-host-with-a-long-name",
                                            "GPU-0",
                                            {"sw_power_cap"},
                                            {0.125, ""},
                                            {0, ""},
                                            {9, ""},
                                            {}}};
    for (const std::string& line : summary_lines(summary(record, kManifest))) {
        if (line.starts_with("RESULT ") || line.starts_with("reason: ")) continue;
        EXPECT_LE(line.size(), 80U) << line;
    }
}

TEST(Summary, NeverPrintsANan) {
    RunRecord record = example_record();
    record.quality.ensemble.value = std::numeric_limits<double>::quiet_NaN();
    record.scores.vflops.value = std::numeric_limits<double>::infinity();
    EXPECT_NE(result_line(record).find("VFLOPS=n/a quality=n/a"), std::string::npos);
}

TEST(Status, HasItsWord) {
    EXPECT_EQ(word_of(Status::valid), "VALID");
    EXPECT_EQ(word_of(Status::invalid), "INVALID");
    EXPECT_EQ(word_of(Status::partial), "PARTIAL");
    EXPECT_EQ(word_of(Status::custom), "CUSTOM");
}

}  // namespace
}  // namespace hpcai::report
