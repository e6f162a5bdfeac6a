// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/error.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/report/plots.hpp>
#include <hpcai/speed/bench.hpp>
#include <hpcai/speed/ceiling.hpp>

namespace hpcai::speed {
namespace {

constexpr std::size_t kSlowestShown = 10;

struct Sum {
    double in_step_seconds = 0;
    double alone_seconds = 0;
};

std::string row(const std::string& name, const std::string& pass, const Sum& sum, double total) {
    return fmt::format("{:<28} {:<16} {:>12.3f} {:>12.3f} {:>7.1f}\n", name, pass,
                       1e3 * sum.in_step_seconds, 1e3 * sum.alone_seconds,
                       100 * sum.in_step_seconds / total);
}

}  // namespace

std::string bench_text(const BenchReport& report) {
    std::string text = fmt::format(
        "{} {} batch {} at {} x {} on {}\n"
        "step      {:.4f} s median of {} (fastest {:.4f} s)\n"
        "alone     {:.4f} s sum of the operations, step / sum = {:.3f}\n"
        "speed     {:.2f} images/s, {} by table3\n"
        "loss      {:.6g} mean, {} skipped\n"
        "measuring {:.2e} s per step, {}: {:.5f} % of the step\n\n",
        report.model, report.precision, report.batch_size, report.image_size, report.image_width,
        report.device, report.step_seconds, report.steps, report.fastest_step_seconds,
        report.alone_sum_seconds, report.step_seconds / report.alone_sum_seconds,
        report.images_per_second, format_si(report.flops, "FLOPS"), report.loss,
        counted(report.skipped_steps, "step"), report.measuring_seconds_per_step,
        counted(report.clock_readings_per_step, "clock reading"),
        100 * report.measuring_seconds_per_step / report.step_seconds);
    const std::string header = fmt::format("{:<28} {:<16} {:>12} {:>12} {:>7}\n", "operation",
                                           "pass", "in step, ms", "alone, ms", "% step");
    std::map<std::pair<std::string, std::string>, Sum> sums;
    for (const BenchOperation& operation : report.operations) {
        Sum& sum = sums[{operation.operation, operation.pass}];
        sum.in_step_seconds += operation.in_step_seconds;
        sum.alone_seconds += operation.alone_seconds;
    }
    text += header;
    for (const auto& [key, sum] : sums) {
        text += row(key.first, key.second, sum, report.step_seconds);
    }
    std::vector<BenchOperation> slowest = report.operations;
    std::sort(slowest.begin(), slowest.end(),
              [](const auto& a, const auto& b) { return a.in_step_seconds > b.in_step_seconds; });
    slowest.resize(std::min(slowest.size(), kSlowestShown));
    text += fmt::format("\nthe {} slowest operations\n{}", slowest.size(), header);
    for (const BenchOperation& operation : slowest) {
        text += row(operation.name, operation.pass,
                    {operation.in_step_seconds, operation.alone_seconds}, report.step_seconds);
    }
    return text;
}

std::string bench_json(const BenchReport& report) {
    nlohmann::ordered_json operations = nlohmann::ordered_json::array();
    for (const BenchOperation& operation : report.operations) {
        operations.push_back({{"name", operation.name},
                              {"operation", operation.operation},
                              {"pass", operation.pass},
                              {"in_step_seconds", operation.in_step_seconds},
                              {"alone_seconds", operation.alone_seconds},
                              {"flops", operation.flops},
                              {"moved_bytes", operation.moved_bytes}});
    }
    const nlohmann::ordered_json json{
        {"schema", "hpcai500-bench/1"},
        {"device", report.device},
        {"model", report.model},
        {"precision", report.precision},
        {"batch_size", report.batch_size},
        {"image_size", report.image_size},
        {"image_width", report.image_width},
        {"steps", report.steps},
        {"step_seconds", report.step_seconds},
        {"fastest_step_seconds", report.fastest_step_seconds},
        {"loss", report.loss},
        {"skipped_steps", report.skipped_steps},
        {"alone_sum_seconds", report.alone_sum_seconds},
        {"clock_readings_per_step", report.clock_readings_per_step},
        {"measuring_seconds_per_step", report.measuring_seconds_per_step},
        {"images_per_second", report.images_per_second},
        {"flops", report.flops},
        {"operations", operations}};
    return json.dump(2) + "\n";
}

std::string bench_svg(const BenchReport& report, const RooflineRecord& roofline) {
    report::RooflinePlot plot;
    plot.title = fmt::format("{} {}, {} samples of {} x {}", report.model, report.precision,
                             report.batch_size, report.image_size, report.image_width);
    const CeilingRecord ceiling = ceiling_from(roofline.operations, report.precision);
    require(ceiling.ceiling_flops.value.has_value(), ExitCode::data,
            "roofline file: expected rates in {}, got none; measure with training.precision {}",
            report.precision, report.precision);
    if (ceiling.gemm_flops.value) {
        plot.ceilings.push_back({"large matrix product", *ceiling.gemm_flops.value});
    }
    if (ceiling.model_convolution_flops.value) {
        plot.ceilings.push_back(
            {"the model's fastest convolution", *ceiling.model_convolution_flops.value});
    }
    plot.memory_bytes_per_second = {std::nullopt, "not in the file"};
    for (const BandwidthRate& rate : roofline.bandwidths) {
        if (rate.name == "memory") plot.memory_bytes_per_second = rate.bytes_per_second;
    }
    for (const BenchOperation& operation : report.operations) {
        plot.operations.push_back({operation.name, operation.operation, operation.pass,
                                   operation.flops, operation.moved_bytes,
                                   operation.in_step_seconds});
    }
    return report::roofline_svg(plot);
}

}  // namespace hpcai::speed
