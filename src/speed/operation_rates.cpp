// SPDX-License-Identifier: Apache-2.0
#include "operation_rates.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include <fmt/core.h>

#include <hpcai/comm/agreement.hpp>
#include <hpcai/metrics/moved_bytes.hpp>
#include <hpcai/models/make_model.hpp>

#include "operation_bench.hpp"
#include "timed_work.hpp"

namespace hpcai::speed {
namespace {

constexpr int kRunsBefore = 4;  // those that do not count, of a device that records
constexpr int kFewestRuns = 3;
constexpr int kMaxRuns = 15;
// One of a series against the one before, its work and its numbers.
constexpr double kTimesSlower = 8, kTimesLarger = 8;

bool is_measured(const ops::Operation& operation) {
    return std::holds_alternative<ops::Convolution>(operation) ||
           std::holds_alternative<ops::Linear>(operation);
}

double flops_of(const ops::Operation& operation, ops::Pass pass) {
    const ops::Flops flops = ops::flops(operation, ops::Ledger::two_mac, false);
    if (pass == ops::Pass::weight_gradient) return static_cast<double>(flops.weight_gradient);
    if (pass == ops::Pass::input_gradient) return static_cast<double>(flops.input_gradient);
    return static_cast<double>(flops.forward);
}

OperationRate describe(const MeasuredOperation& one, const device::Precision& precision,
                       ops::Pass pass) {
    OperationRate rate;
    rate.name = one.name;
    rate.operation = ops::name_of(one.operation);
    rate.precision = name_of(precision);
    rate.pass = name_of(pass);
    rate.shape = shape_text(one.operation);
    rate.of_model = one.of_model;
    rate.nodes = one.nodes;
    rate.flops = flops_of(one.operation, pass);
    return rate;
}

struct Measured {
    std::vector<OperationRate> rates;
    double setup_seconds = 0;  // of kernels and numbers
};

/// Measures one operation; `seconds` are for each of its passes.
Measured measure(RateMeter& meter, const MeasuredOperation& one, const device::Precision& precision,
                 double seconds) {
    const double began = meter.elapsed_seconds();
    std::unique_ptr<OperationBench> bench;
    comm::collective_try(meter.everyone(), [&] {
        bench = std::make_unique<OperationBench>(
            one.operation, OperationBench::Setup{meter.device(), precision, device::Mode::training,
                                                 one.needs_input_gradient});
    });
    Measured measured{{}, meter.elapsed_seconds() - began};
    for (const ops::Pass pass : bench->passes()) {
        OperationRate rate = describe(one, precision, pass);
        rate.bytes = metrics::moved_bytes(bench->graph(), bench->node(), pass, precision.compute);
        const double median_seconds = meter.seconds_of([&] { bench->run(pass); }, seconds);
        rate.seconds = {median_seconds, ""};
        rate.flops_per_second = {rate.flops / median_seconds, ""};
        measured.rates.push_back(std::move(rate));
    }
    return measured;
}

double longest(const std::vector<OperationRate>& rates) {
    double seconds = 0;
    for (const OperationRate& rate : rates) seconds = std::max(seconds, *rate.seconds.value);
    return seconds;
}

double forward_bytes(const MeasuredOperation& one, tensor::DType compute) {
    const graph::Graph graph = graph_of(one.operation, one.needs_input_gradient);
    return metrics::moved_bytes(graph, graph.nodes().front(), ops::Pass::forward, compute);
}

double intensity(const MeasuredOperation& one, tensor::DType compute) {
    return flops_of(one.operation, ops::Pass::forward) / forward_bytes(one, compute);
}

}  // namespace

double RateMeter::agree(double value) {
    everyone_.all_reduce_max(std::span(&value, 1));
    return value;
}

double RateMeter::mean(double value) {
    everyone_.all_reduce_sum(std::span(&value, 1));
    return value / everyone_.size();
}

double RateMeter::elapsed_seconds() {
    return agree(watch_.seconds());
}

double RateMeter::seconds_of(const std::function<void()>& work, double seconds, bool has_upload) {
    // As often on all ranks, as they may have to wait for one another.
    const int in_a_row = has_upload ? 1 : static_cast<int>(agree(runs_in_a_row(device_, work)));
    TimedWork timed(device_, {[&] {
                        for (int i = 0; i < in_a_row; ++i) work();
                    }},
                    has_upload);
    const double first = agree(timed.run()[0]);
    const int runs = static_cast<int>(
        std::clamp(seconds / std::max(first, 1e-9), double{kFewestRuns}, double{kMaxRuns}));
    return mean(median_seconds(runs, [&] { return timed.run()[0] / in_a_row; }));
}

std::string shape_text(const ops::Operation& operation) {
    if (const auto* op = std::get_if<ops::Convolution>(&operation)) {
        return fmt::format("{} x {} x {} x {}, {} filters of {} x {}, stride {}", op->input[0],
                           op->input[1], op->input[2], op->input[3], op->filters, op->kernel,
                           op->kernel, op->stride);
    }
    if (const auto* op = std::get_if<ops::Linear>(&operation)) {
        return fmt::format("{} x {}, {} features", op->input[0], op->input[1], op->features);
    }
    return tensor::to_string(ops::output_shape(operation));
}

std::vector<MeasuredOperation> operations_of_model(const config::Config& config, int samples,
                                                   tensor::DType compute) {
    const graph::Graph model = models::make_model(config, {.batch = samples});
    std::vector<MeasuredOperation> operations;
    std::map<std::string, std::size_t> known;
    for (const graph::Node& node : model.nodes()) {
        if (!is_measured(node.operation)) continue;
        const auto [place, is_new] = known.emplace(shape_text(node.operation), operations.size());
        if (is_new) {
            operations.push_back({node.name, node.operation, true, 0, !model.is_first_layer(node)});
        }
        ++operations[place->second].nodes;
    }
    std::ranges::stable_sort(operations, std::ranges::greater{},
                             [&](const MeasuredOperation& one) { return intensity(one, compute); });
    return operations;
}

std::vector<MeasuredOperation> large_matrix_products() {
    std::vector<MeasuredOperation> products;
    for (const std::int64_t side : {512, 1024, 2048, 4096, 8192}) {
        products.push_back({fmt::format("gemm {}", side), ops::Linear{{side, side}, side}});
    }
    return products;
}

std::vector<MeasuredOperation> large_convolutions() {
    std::vector<MeasuredOperation> convolutions;
    for (const std::int64_t samples : {1, 8, 64}) {
        convolutions.push_back({fmt::format("convolution of {}", samples),
                                ops::Convolution{{samples, 28, 28, 256}, 256, 3, 1, 1}});
    }
    return convolutions;
}

std::vector<OperationRate> measure_operations(RateMeter& meter,
                                              const std::vector<MeasuredOperation>& operations,
                                              const device::Precision& precision, double seconds) {
    constexpr int kPasses = 3;
    const double end = std::min(meter.limit_seconds(), meter.elapsed_seconds() + seconds);
    const double each =
        seconds / (kPasses * static_cast<double>(std::max<std::size_t>(operations.size(), 1)));
    std::vector<OperationRate> all;
    double slowest = 0, setup_seconds = 0;
    for (const MeasuredOperation& one : operations) {
        const double left = end - meter.elapsed_seconds();
        const double needed = one.of_model
                                  ? 0
                                  : kTimesSlower * slowest * kPasses * (kRunsBefore + kFewestRuns) +
                                        kTimesLarger * setup_seconds;
        if (left <= needed) {
            if (!one.of_model && !all.empty()) break;
            OperationRate skipped = describe(one, precision, ops::Pass::forward);
            skipped.bytes = forward_bytes(one, precision.compute);
            skipped.seconds = skipped.flops_per_second = {std::nullopt, "no time was left for it"};
            all.push_back(std::move(skipped));
            continue;
        }
        const Measured measured = measure(meter, one, precision, each);
        slowest = std::max(slowest, longest(measured.rates));
        setup_seconds = measured.setup_seconds;
        all.insert(all.end(), measured.rates.begin(), measured.rates.end());
    }
    return all;
}

}  // namespace hpcai::speed
