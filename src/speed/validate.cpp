// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/process.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/context/devices.hpp>
#include <hpcai/graph/fuse_for_device.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/reference/random_problem.hpp>
#include <hpcai/speed/bench.hpp>
#include <hpcai/speed/validate.hpp>

#include "operation_check.hpp"
#include "record_json.hpp"
#include "step_check.hpp"

namespace hpcai::speed {
namespace {

constexpr double kLogSeconds = 10;  // between two lines of progress
// Maximum FLOPs of all forward passes. The naive loops need seven times as many FLOPs, and compute
// about 10^9 per second.
constexpr std::int64_t kMaxFlops = 50'000'000'000, kMaxQuickFlops = 12'000'000'000;
// With one sample, the average pool before the last layer spreads the gradient evenly over the
// pixels, and norms before it remove nearly all of it.
constexpr std::int64_t kMinStepSamples = 4;
// Two naive networks keep outputs and gradients in double; the device keeps its own.
constexpr double kStepBytesPerNumber = 40;
// The layout of a tensor is read from its elements' indices in fp32, which is exact below 2^24.
constexpr std::int64_t kMaxElements = (1 << 24) - 1;

/// Returns the number of elements of the largest input or output of an operation.
std::int64_t largest_tensor(const ops::Operation& operation) {
    std::int64_t elements = output_shape(operation).elements();
    for (const tensor::Shape& shape : input_shapes(operation)) {
        elements = std::max(elements, shape.elements());
    }
    return elements;
}

/// Returns why an operation cannot be checked; empty if it can.
std::string_view obstacle(const ops::Operation& operation) {
    if (!naive::has_random_problem(operation)) {
        return "boxes of detectors, shards and norms of under 16 values cannot be compared";
    }
    return largest_tensor(operation) > kMaxElements ? "a tensor has 2^24 numbers or more" : "";
}

graph::Graph model_graph(const config::Config& config, device::Device& device,
                         const device::Precision& precision, std::int64_t samples) {
    const graph::Graph graph = models::make_model(config, {.batch = samples});
    if (!config.training.fusion) return graph;
    return graph::fuse_for_device(
        graph, device,
        {.compute = precision.compute, .tf32 = precision.tf32, .int8 = precision.int8});
}

/// Returns the largest batch within the limits above and training.batch_size, at least one sample.
std::int64_t affordable_samples(const config::Config& config, const ValidateRequest& request,
                                const device::Precision& precision) {
    const graph::Graph graph = models::make_model(config);
    std::int64_t flops = 1, elements = 1;
    for (const DistinctOperation& distinct : distinct_operations(graph)) {
        if (!obstacle(distinct.operation).empty()) continue;
        flops += ops::flops(distinct.operation, ops::Ledger::two_mac, false).forward;
        elements = std::max(elements, largest_tensor(distinct.operation));
    }
    if (precision.int8) flops *= 2;  // also computes naive convolutions of integers
    const std::int64_t most =
        std::min((request.quick ? kMaxQuickFlops : kMaxFlops) / flops, kMaxElements / elements);
    return std::min<std::int64_t>(std::max<std::int64_t>(most, 1), config.training.batch_size);
}

/// Returns the batch of a whole step: at least kMinStepSamples, otherwise the largest within the
/// maximum FLOPs and training.batch_size. Throws Error(usage) if memory does not suffice.
std::int64_t affordable_step_samples(const config::Config& config, const ValidateRequest& request) {
    const graph::Graph graph = models::make_model(config);
    std::int64_t flops = 1, elements = 0;
    for (const graph::Node& node : graph.nodes()) {
        flops += ops::flops(node.operation, ops::Ledger::two_mac, false).forward;
        elements += graph.value(node.output).shape.elements();
    }
    const std::int64_t most = (request.quick ? kMaxQuickFlops : kMaxFlops) / flops;
    const auto samples = std::clamp<std::int64_t>(
        most, kMinStepSamples, std::max<std::int64_t>(config.training.batch_size, kMinStepSamples));
    const auto bytes = static_cast<double>(samples * elements) * kStepBytesPerNumber;
    require(bytes < static_cast<double>(host_memory_bytes()), ExitCode::usage,
            "workload.image_size: level 1 of validate needs about {:.0f} GB for {} of {} pixels in "
            "height; expected a smaller image or network",
            bytes / 1e9, counted(samples, "image"), config.workload.image_size);
    return samples;
}

std::string list_of(const std::vector<std::int64_t>& numbers) {
    return fmt::format("({})", fmt::join(numbers, ", "));
}

/// Returns a number as text; "none" if it was not finite.
std::string number_text(const Quantity& number) {
    return number.value ? fmt::format("{:.1e}", *number.value) : "none";
}

struct Worst {
    const OperationCheck* operation = nullptr;
    const PassCheck* pass = nullptr;
    const TensorCheck* tensor = nullptr;
};

const TensorCheck* worst_tensor(const PassCheck& pass) {
    const auto worst = std::ranges::max_element(pass.tensors, {}, &TensorCheck::severity);
    return worst == pass.tensors.end() ? nullptr : &*worst;
}

Worst worst_of(const ValidateReport& report) {
    Worst worst;
    for (const OperationCheck& operation : report.operations) {
        for (const PassCheck& pass : operation.passes) {
            const TensorCheck* const tensor = worst_tensor(pass);
            if (tensor == nullptr) continue;
            if (worst.tensor != nullptr && tensor->severity() <= worst.tensor->severity()) continue;
            worst = {&operation, &pass, tensor};
        }
    }
    return worst;
}

std::string milliseconds_text(double seconds) {
    return seconds < 1 ? fmt::format("{:.3f}", 1e3 * seconds)
                       : fmt::format("{:.5g}", 1e3 * seconds);
}

std::string place_text(const TensorCheck& tensor) {
    const std::string text =
        fmt::format("    {}{} at {} of {}: {}, naive {:.8g}", tensor.passed ? "" : "FAILED ",
                    tensor.tensor, list_of(tensor.place), list_of(tensor.shape),
                    tensor.computed.value ? fmt::format("{:.8g}", *tensor.computed.value) : "none",
                    tensor.expected);
    return wrap(text, 6) + "\n";
}

std::string pass_line(const PassCheck& pass) {
    std::string line = fmt::format("  {:<16}", pass.pass);
    if (const TensorCheck* const tensor = worst_tensor(pass)) {
        line += fmt::format("{:<7} of {:.1e}, L2 {:<7}", number_text(tensor->largest_error),
                            tensor->tolerance, number_text(tensor->l2_error));
    }
    line += fmt::format("  {} ms", milliseconds_text(pass.median_seconds));
    if (pass.low_seconds.value) {
        line += fmt::format(" [{}, {}]", milliseconds_text(*pass.low_seconds.value),
                            milliseconds_text(*pass.high_seconds.value));
    }
    line += "\n";
    for (const TensorCheck& tensor : pass.tensors) {
        const bool is_worst = &tensor == worst_tensor(pass);
        if (is_worst || !tensor.passed) line += place_text(tensor);
    }
    return line;
}

const TensorCheck* worst_tensor(const ValidateReport& report) {
    const auto worst = std::ranges::max_element(report.step, {}, &TensorCheck::severity);
    return worst == report.step.end() ? nullptr : &*worst;
}

/// Returns the first tensors of a step that fail, or else the one with the worst error, and the
/// overhead.
std::string step_text(const ValidateReport& report) {
    constexpr int kShown = 5;
    std::string text;
    int left = kShown;
    for (const TensorCheck& tensor : report.step) {
        const bool is_worst = report.passed && &tensor == worst_tensor(report);
        if (!is_worst && (tensor.passed || left-- <= 0)) continue;
        text += fmt::format("  {} of {:.1e}, L2 {}\n{}", number_text(tensor.largest_error),
                            tensor.tolerance, number_text(tensor.l2_error), place_text(tensor));
    }
    if (left < 0) text += fmt::format("  {} more failed\n", -left);
    if (!report.overhead.value) return text;
    text += fmt::format("overhead: step / sum of its operations = {:.3f}", *report.overhead.value);
    if (report.low_overhead.value) {
        text += fmt::format(" [{:.3f}, {:.3f}]", *report.low_overhead.value,
                            *report.high_overhead.value);
    }
    return text + "\n";
}

std::string operation_text(const OperationCheck& check) {
    std::string text = wrap(check.operation + " " + check.shape, 2) + "\n";
    const std::string nodes =
        fmt::format("  {}, first {}", counted(check.nodes, "node"), check.node);
    if (!check.failure.empty())
        return text + nodes + "\n" + wrap("  FAILED: " + check.failure, 4) + "\n";
    text += wrap(nodes + fmt::format("; bits {} in {} runs; naive gradient {:.0e}",
                                     check.bits_are_equal ? "equal" : "DIFFER", kComparedRuns,
                                     check.gradient_error),
                 4) +
            "\n";
    if (check.writes_past_end) text += "  FAILED: writes past the end of a tensor\n";
    if (!(check.gradient_error <= kGradientTolerance)) {  // it may be NaN
        text += "  FAILED: the naive gradient differs from a central difference\n";
    }
    for (const PassCheck& pass : check.passes) text += pass_line(pass);
    return text;
}

/// Returns the worst place, if any, and the verdict in one line.
std::string verdict_text(const ValidateReport& report) {
    const Worst worst = worst_of(report);
    const TensorCheck* const tensor = report.level == 0 ? worst.tensor : worst_tensor(report);
    const auto failed = report.level == 0
                            ? std::ranges::count(report.operations, false, &OperationCheck::passed)
                            : std::ranges::count(report.step, false, &TensorCheck::passed);
    std::string line =
        fmt::format("VALIDATE {}: {}{} in {} on {}", report.passed ? "PASSED" : "FAILED",
                    report.passed ? "" : fmt::format("{} of ", failed),
                    report.level == 0 ? counted(std::ssize(report.operations), "operation")
                                      : counted(std::ssize(report.step), "tensor") + " of a step",
                    report.precision, report.device);
    if (!report.unchecked.empty()) {
        line += fmt::format("; {} not checked", counted(std::ssize(report.unchecked), "operation"));
    }
    if (tensor == nullptr) return line + "\n";
    const std::string operation = report.level == 0
                                      ? fmt::format("{} {}, {}, ", worst.operation->operation,
                                                    worst.operation->shape, worst.pass->pass)
                                      : "";
    return wrap(fmt::format("Worst: {}{} at {} of {}", operation, tensor->tensor,
                            list_of(tensor->place), list_of(tensor->shape)),
                2) +
           "\n" + line + fmt::format("; worst {:.2f} of its tolerance\n", tensor->severity());
}

/// Checks an operation. Stores the message of an Error in `failure`; throws it if the device no
/// longer works.
OperationCheck check_or_failure(const DistinctOperation& distinct, device::Device& device,
                                const device::Precision& precision, int runs) {
    try {
        return check_operation(distinct, device, precision, runs);
    } catch (const Error& error) {
        OperationCheck check{.operation = ops::name_of(distinct.operation),
                             .shape = distinct.shape,
                             .node = distinct.node,
                             .nodes = distinct.nodes,
                             .failure = printable(error.what())};
        try {
            device.synchronize();
        } catch (const Error&) {
            throw Error(error.code(),
                        fmt::format("{} {}: {}", check.operation, check.shape, check.failure));
        }
        return check;
    }
}

void check_operations(const config::Config& config, device::Device& device,
                      const device::Precision& precision, Logger& log, ValidateReport& report) {
    const Stopwatch watch;
    report.compared_runs = kComparedRuns;
    report.gradient_tolerance = kGradientTolerance;
    const std::vector<DistinctOperation> all =
        distinct_operations(model_graph(config, device, precision, report.batch_size));
    double logged_seconds = 0;
    for (const DistinctOperation& distinct : all) {
        if (const auto reason = obstacle(distinct.operation); !reason.empty()) {
            report.unchecked.push_back(
                fmt::format("{} {}: {}", ops::name_of(distinct.operation), distinct.shape, reason));
            continue;
        }
        if (watch.seconds() - logged_seconds >= kLogSeconds) {
            logged_seconds = watch.seconds();
            log.info("checking operation {} of {}: {} {}", &distinct - all.data() + 1, all.size(),
                     ops::name_of(distinct.operation), distinct.shape);
        }
        report.operations.push_back(check_or_failure(distinct, device, precision, report.runs));
    }
    report.passed = std::ranges::all_of(report.operations, &OperationCheck::passed);
}

void check_whole_step(const config::Config& config, device::Device& device,
                      const device::Precision& precision, Logger& log, ValidateReport& report) {
    config::Config reduced = config;
    reduced.training.batch_size = static_cast<int>(report.batch_size);
    report.step = StepCheck(reduced, precision, log).run(device);
    report.passed = std::ranges::all_of(report.step, &TensorCheck::passed);
    log.info("measuring the overhead: {}", counted(report.runs, "step"));
    try {
        const BenchReport bench = run_bench(reduced, report.runs);
        const auto relative = [&](Quantity seconds) {
            if (seconds.value) *seconds.value /= bench.alone_sum_seconds;
            return seconds;
        };
        report.overhead = relative({bench.step_seconds, ""});
        report.low_overhead = relative(bench.low_step_seconds);
        report.high_overhead = relative(bench.high_step_seconds);
    } catch (const Error& error) {
        report.overhead = report.low_overhead = report.high_overhead = no_value(error.what());
    }
}

}  // namespace

ValidateReport run_validate(const config::Config& config, const ValidateRequest& request,
                            Logger& log) {
    const Stopwatch watch;
    const context::OpenDevice opened = context::open_device(config, device::count_cores(), {});
    device::Device& device = *opened.device;
    if (!opened.note.empty()) log.warn("{}", opened.note);
    const device::Precision precision =
        context::choose_precision(config.training.precision, context::formats_of(device));
    require(request.level == 0 || !precision.int8, ExitCode::usage,
            "training.precision: expected another than int8 at level 1 of validate");
    require(request.level == 0 || config.workload.model != config::Model::faster_rcnn_r50_fpn,
            ExitCode::usage,
            "workload.model: expected one without boxes at level 1 of validate, got {}",
            config::value_text(config, "workload.model"));
    ValidateReport report;
    report.level = request.level;
    report.device = device.description();
    report.model = config::value_text(config, "workload.model");
    report.precision = name_of(precision);
    report.batch_size = request.level == 0 ? affordable_samples(config, request, precision)
                                           : affordable_step_samples(config, request);
    report.configured_batch_size = config.training.batch_size;
    report.image_size = config.workload.image_size;
    report.image_width = image_width(config);
    report.runs = request.runs;
    const auto check = request.level == 0 ? check_operations : check_whole_step;
    check(config, device, precision, log, report);
    report.seconds = watch.seconds();
    return report;
}

std::string validate_text(const ValidateReport& report) {
    const bool is_reduced = report.batch_size < report.configured_batch_size;
    std::string text =
        wrap(fmt::format("{} {} at {} x {}, batch {}{} on {}", report.model, report.precision,
                         report.image_size, report.image_width, report.batch_size,
                         is_reduced ? fmt::format(" (configured: {}, reduced for naive loops)",
                                                  report.configured_batch_size)
                                    : "",
                         report.device),
             10);
    text += fmt::format(
        "\nErrors are relative to the largest number of the naive tensor. The tolerance\n"
        "follows `of`. Times are medians of {} with 95 % intervals.\n\n",
        counted(report.runs, "run"));
    for (const OperationCheck& check : report.operations) text += operation_text(check);
    text += step_text(report);
    for (const std::string& name : report.unchecked) text += wrap("not checked: " + name, 2) + "\n";
    return text + fmt::format("\nThe checks took {:.0f} s.\n", report.seconds) +
           verdict_text(report);
}

std::string validate_json(const ValidateReport& report) {
    return nlohmann::ordered_json(report).dump(2) + "\n";
}

}  // namespace hpcai::speed
