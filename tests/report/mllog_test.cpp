// SPDX-License-Identifier: Apache-2.0
#include <sstream>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/error.hpp>
#include <hpcai/report/mllog.hpp>

#include "example_record.hpp"

namespace hpcai::report {
namespace {

std::vector<nlohmann::json> lines_of(const std::string& text) {
    constexpr std::string_view kPrefix = ":::MLLOG ";
    std::vector<nlohmann::json> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        EXPECT_TRUE(line.starts_with(kPrefix)) << line;
        lines.push_back(nlohmann::json::parse(line.substr(kPrefix.size())));
    }
    return lines;
}

nlohmann::json line_of(const std::vector<nlohmann::json>& lines, const std::string& key) {
    for (const nlohmann::json& line : lines) {
        if (line["key"] == key) return line;
    }
    ADD_FAILURE() << "no " << key;
    return {};
}

std::vector<MllogSetting> settings() {
    std::vector<MllogSetting> all(2);
    all[0].key = "opt_name";
    all[0].text = "sgd";
    all[1].key = "opt_base_learning_rate";
    all[1].value.value = 0.1;
    return all;
}

TEST(Mllog, ReportsTheRunOfAGroupOnItsClock) {
    const std::vector<nlohmann::json> lines = lines_of(mllog(example_record(), 1, settings()));
    constexpr std::int64_t kStart = 981173106000;  // 2001-02-03T04:05:06Z
    EXPECT_EQ(line_of(lines, "init_start")["time_ms"], kStart);
    EXPECT_EQ(line_of(lines, "run_start")["time_ms"], kStart + 1500) << "start-up, staging";
    EXPECT_EQ(line_of(lines, "epoch_stop")["time_ms"], kStart + 7500);
    EXPECT_EQ(line_of(lines, "epoch_stop")["metadata"]["epoch_num"], 1);
    EXPECT_EQ(line_of(lines, "eval_start")["time_ms"], kStart + 7500) << "between two epochs";
    EXPECT_EQ(line_of(lines, "eval_accuracy")["value"], 0.5);
    const nlohmann::json& last = lines[lines.size() - 3];
    EXPECT_EQ(last["key"], "eval_accuracy");
    EXPECT_EQ(last["value"], 0.725);
    EXPECT_EQ(last["metadata"]["epoch_num"], 2);
    EXPECT_EQ(lines[lines.size() - 4]["time_ms"], kStart + 13500);
    EXPECT_EQ(lines.back()["key"], "run_stop");
    EXPECT_EQ(lines.back()["time_ms"], kStart + 15000);
    EXPECT_EQ(lines.back()["metadata"]["status"], "success");
    EXPECT_EQ(line_of(lines, "seed")["value"], 18446744073709551615U);
    EXPECT_EQ(line_of(lines, "global_batch_size")["value"], 32);
    EXPECT_EQ(line_of(lines, "train_samples")["value"], 100);
    EXPECT_EQ(line_of(lines, "eval_samples")["value"], 40);
    EXPECT_EQ(line_of(lines, "opt_name")["value"], "sgd");
    EXPECT_EQ(line_of(lines, "opt_base_learning_rate")["value"], 0.1);
    EXPECT_EQ(line_of(lines, "submission_platform")["value"], "2 x cpu");
    EXPECT_EQ(line_of(lines, "submission_org")["value"], "University of Examples");
    RunRecord silent = example_record();
    silent.submission = {};
    const nlohmann::json nobody = line_of(lines_of(mllog(silent, 1, {})), "submission_org");
    EXPECT_TRUE(nobody["value"].is_null());
    EXPECT_TRUE(nobody["metadata"].contains("reason"));
}

TEST(Mllog, OfALostGroupIsAborted) {
    const std::vector<nlohmann::json> lines = lines_of(mllog(partial_record(), 1, settings()));
    EXPECT_EQ(lines.back()["key"], "run_stop");
    EXPECT_EQ(lines.back()["metadata"]["status"], "aborted");
    EXPECT_EQ(lines.back()["metadata"]["reason"], "rank 3 ended");
    for (const nlohmann::json& line : lines) EXPECT_NE(line["key"], "eval_accuracy");
}

TEST(Mllog, KeepsATextOnItsLine) {
    RunRecord record = partial_record();
    record.work.groups[1].failure = "x\n:::MLLOG {}\xff";
    record.topology.map[2].device = "a\r\nb";
    const std::vector<nlohmann::json> lines = lines_of(mllog(record, 1, settings()));
    EXPECT_EQ(lines.size(), lines_of(mllog(partial_record(), 1, settings())).size());
}

TEST(Mllog, MayStartInAnyYearOfFourDigits) {
    RunRecord record = example_record();
    const auto start_of = [&](const char* time) {
        record.time.started_utc = time;
        return line_of(lines_of(mllog(record, 0, settings())), "init_start")["time_ms"];
    };
    EXPECT_EQ(start_of("9999-12-31T23:59:59Z"), 253402300799000);
    EXPECT_EQ(start_of("0001-01-01T00:00:00Z"), -62135596800000);
}

TEST(Mllog, RejectsAStartThatIsNoTime) {
    RunRecord record = example_record();
    for (const char* time : {"", "yesterday", "2001-02-30T04:05:06Z", "2001-02-03T24:05:06Z",
                             "2001-02-03 04:05:06Z", "2001-02-03T04:05:06Z\n"}) {
        record.time.started_utc = time;
        EXPECT_THROW(mllog(record, 0, settings()), Error) << time;
    }
}

}  // namespace
}  // namespace hpcai::report
