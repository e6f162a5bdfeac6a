// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/speed/bench.hpp>

#include "storage/temporary_folder.hpp"

namespace hpcai::speed {
namespace {

BenchReport example() {
    BenchReport report;
    report.device = "2 threads of a machine";
    report.model = "resnet50_v1.5";
    report.precision = "bf16";
    report.batch_size = 8;
    report.image_size = 64;
    report.image_width = 96;
    report.steps = 5;
    report.step_seconds = 0.5;
    report.low_step_seconds = report.high_step_seconds = no_value("fewer than 6 runs");
    report.fastest_step_seconds = 0.4;
    report.alone_sum_seconds = 0.4;
    report.loss = 6.9077553;
    report.skipped_steps = 3;
    report.clock_readings_per_step = 8;
    report.measuring_seconds_per_step = 1e-6;
    report.images_per_second = 16;
    report.flops = 2.5e9;
    for (int layer = 0; layer < 12; ++layer) {
        const std::string name = "conv" + std::to_string(layer);
        report.operations.push_back(
            {name, "convolution", "forward", 0.01 + 0.001 * layer, 0.01, 1.55e9, 1.55e8});
    }
    report.operations.push_back({"parameters", "sgd", "update", 0.05, 0.04});
    return report;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

TEST(BenchText, HasTotalsThenKindsThenTheTenSlowest) {
    const std::vector<std::string> lines = lines_of(bench_text(example()));
    ASSERT_EQ(lines.size(), 7U + 3U + 2U + 1U + 10U);
    EXPECT_EQ(lines[0], "resnet50_v1.5 bf16 batch 8 at 64 x 96 on 2 threads of a machine");
    EXPECT_EQ(lines[1], "step      0.5000 s median of 5 (fastest 0.4000 s)");
    EXPECT_EQ(lines[2], "alone     0.4000 s sum of the operations, step / sum = 1.250");
    EXPECT_TRUE(lines[3].starts_with("speed     16.00 images/s, ")) << lines[3];
    EXPECT_EQ(lines[4], "loss      6.90776 mean, 3 steps skipped");
    EXPECT_EQ(lines[5], "measuring 1.00e-06 s per step, 8 clock readings: 0.00020 % of the step");
    EXPECT_TRUE(lines[7].starts_with("operation")) << lines[7];
    // 12 layers of 10 to 21 ms: 186 ms of the step's 500 ms, 18.6 GFLOP and 1.86 GB
    EXPECT_EQ(lines[8].substr(0, 12), "convolution ");
    EXPECT_TRUE(lines[8].ends_with(" 186.000  120.000  37.2      10      0.1")) << lines[8];
    EXPECT_NE(lines[9].find("  50.000   40.000  10.0   "), std::string::npos) << lines[9];
    EXPECT_TRUE(lines[9].ends_with("      -        -")) << "its work is unknown: " << lines[9];
    EXPECT_EQ(lines[11], "the 10 slowest operations");
    EXPECT_TRUE(lines[13].starts_with("parameters ")) << lines[13];
    EXPECT_TRUE(lines[14].starts_with("conv11 ")) << lines[14];
    EXPECT_TRUE(lines.back().starts_with("conv3 ")) << lines.back();
}

TEST(BenchText, FitsAPageEvenWithLongNames) {
    BenchReport report = example();
    report.device += ", " + std::string(30, 'a') + ", " + std::string(30, 'b');
    const std::string name = "backbone.body.layer3.0.downsample.0";
    report.operations[0].name = name;
    report.operations[0].in_step_seconds = 0.09;
    const std::vector<std::string> lines = lines_of(bench_text(report));
    for (const std::string& line : lines) EXPECT_LE(line.size(), kPageWidth) << line;
    const auto found = std::ranges::find(lines, name);
    ASSERT_NE(found, lines.end());
    EXPECT_TRUE((found + 1)->ends_with(" 90.000   10.000  18.0   1.722  0.01722")) << *(found + 1);
}

TEST(BenchText, HasTheIntervalOfTheMedian) {
    BenchReport report = example();
    report.low_step_seconds = {0.45, ""};
    report.high_step_seconds = {0.52, ""};
    EXPECT_EQ(lines_of(bench_text(report))[2], "          0.4500 to 0.5200 s with 95 % confidence");
}

TEST(BenchJson, HasEveryNumberOfTheReport) {
    const auto json = nlohmann::json::parse(bench_json(example()));
    EXPECT_EQ(json["schema"], "hpcai500-bench/1");
    EXPECT_EQ(json["device"], "2 threads of a machine");
    EXPECT_EQ(json["step_seconds"], 0.5);
    EXPECT_EQ(json["fastest_step_seconds"], 0.4);
    EXPECT_TRUE(json["low_step_seconds"].is_null());
    EXPECT_EQ(json["high_step_seconds_reason"], "fewer than 6 runs");
    EXPECT_EQ(json["alone_sum_seconds"], 0.4);
    EXPECT_EQ(json["loss"], 6.9077553);
    EXPECT_EQ(json["skipped_steps"], 3);
    EXPECT_EQ(json["clock_readings_per_step"], 8);
    EXPECT_EQ(json["measuring_seconds_per_step"], 1e-6);
    EXPECT_EQ(json["images_per_second"], 16);
    EXPECT_EQ(json["flops"], 2.5e9);
    ASSERT_EQ(json["operations"].size(), 13U);
    EXPECT_EQ(json["operations"][12]["operation"], "sgd");
    EXPECT_EQ(json["operations"][12]["in_step_seconds"], 0.05);
}

config::Config smallest_config() {
    config::Config config;
    config.workload.classes = 4;
    config.workload.image_size = 32;
    config.training.batch_size = 1;
    config.training.precision = config::Precision::fp32;
    config.device.threads = 1;
    return config;
}

TEST(RunBench, RejectsNoSteps) {
    const std::string message =
        storage::error_of(ExitCode::usage, [] { run_bench(smallest_config(), 0); });
    EXPECT_NE(message.find("--steps"), std::string::npos) << message;
    storage::error_of(ExitCode::usage, [] { run_bench(smallest_config(), 1001); });
}

TEST(RunBench, GivesTheMeanLossOfSeveralStepsAndSamples) {
    config::Config config = smallest_config();
    config.training.batch_size = 2;
    config.run.loss_steps = 3;
    EXPECT_NEAR(run_bench(config, 1).loss, std::log(4), 1) << "of four classes, untrained";
}

TEST(RunBench, EnclosesTheMedianOfSixSteps) {
    const BenchReport report = run_bench(smallest_config(), 6);
    EXPECT_EQ(report.low_step_seconds.value, report.fastest_step_seconds) << "ranks 1 and 6";
    EXPECT_GE(report.high_step_seconds.value, report.step_seconds);
}

TEST(RunBench, TimesEveryOperationOfAStepOnce) {
    const BenchReport report = run_bench(smallest_config(), 1);
    EXPECT_EQ(report.model, "resnet50_v1.5");
    EXPECT_EQ(report.precision, "fp32");
    EXPECT_EQ(report.steps, 1);
    EXPECT_EQ(report.step_seconds, report.fastest_step_seconds) << "of one step";
    EXPECT_DOUBLE_EQ(report.images_per_second, 1 / report.step_seconds);
    EXPECT_EQ(report.skipped_steps, 0);
    // Six phases, the end of a step, which is the beginning of the next, and the beginning of the
    // first step.
    EXPECT_EQ(report.clock_readings_per_step, 9);
    EXPECT_GT(report.measuring_seconds_per_step, 0);
    double alone = 0, in_step = 0;
    std::set<std::pair<std::string, std::string>> seen;
    for (const BenchOperation& one : report.operations) {
        EXPECT_TRUE(seen.insert({one.name, one.pass}).second) << one.name << " " << one.pass;
        EXPECT_GT(one.in_step_seconds, 0) << one.name << " " << one.pass;
        EXPECT_GT(one.alone_seconds, 0) << one.name << " " << one.pass;
        alone += one.alone_seconds;
        in_step += one.in_step_seconds;
    }
    EXPECT_DOUBLE_EQ(report.alone_sum_seconds, alone);
    // The sums are of other steps, on a machine that may be busy.
    EXPECT_LE(in_step, 3 * report.step_seconds);
    const auto convolutions = std::count_if(
        report.operations.begin(), report.operations.end(),
        [](const auto& one) { return one.operation == "convolution" && one.pass == "forward"; });
    EXPECT_EQ(convolutions, 53);
}

}  // namespace
}  // namespace hpcai::speed
