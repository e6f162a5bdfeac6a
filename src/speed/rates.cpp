// SPDX-License-Identifier: Apache-2.0
#include "rates.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include <fmt/core.h>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/metrics/moved_bytes.hpp>
#include <hpcai/models/make_model.hpp>

#include "operation_bench.hpp"
#include "timed_work.hpp"

namespace hpcai::speed {
namespace {

constexpr int kRunsBefore = 4;  // warm-up runs of a device that records
constexpr int kMinRuns = 3;
constexpr int kMaxRuns = 15;
// Largest growth from one large operation to the next: of time, and of memory and setup time.
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
    double setup_seconds = 0;  // of kernels and inputs
};

/// Measures one operation, about `seconds` for each of its passes.
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

constexpr std::array<std::size_t, 5> kSizes{std::size_t{4} << 10, std::size_t{64} << 10,
                                            std::size_t{1} << 20, std::size_t{16} << 20,
                                            std::size_t{64} << 20};
constexpr int kMinSums = 3;
constexpr int kMaxSums = 20;

class SumBench {
public:
    SumBench(RateMeter& meter, const SummingRanks& ranks, std::size_t bytes)
        : meter_(meter),
          ranks_(ranks),
          memory_(meter.device().allocate(bytes)),
          values_(static_cast<float*>(memory_->data()), bytes / sizeof(float)) {
        ranks.reducer.prepare(values_);
    }

    /// Returns the seconds of one all-reduce on the slowest rank, after a barrier.
    double run() {
        meter_.device().synchronize();
        ranks_.group.barrier();
        const Stopwatch watch;
        ranks_.reducer.start_all_reduce(values_)->wait();
        ranks_.reducer.check();
        meter_.device().synchronize();
        ranks_.reducer.end_step();
        return meter_.agree(watch.seconds());
    }

private:
    RateMeter& meter_;
    const SummingRanks& ranks_;
    std::unique_ptr<device::Memory> memory_;
    std::span<float> values_;
};

}  // namespace

double RateMeter::agree(double value) {
    everyone_.all_reduce_max(std::span(&value, 1));
    return value;
}

double RateMeter::mean(double value) {
    everyone_.all_reduce_sum(std::span(&value, 1));
    return value / everyone_.size();
}

double RateMeter::seconds_of(const std::function<void()>& work, double seconds, bool has_upload) {
    // The number of runs is the same on all ranks, because they may wait for each other.
    const int in_a_row = has_upload ? 1 : static_cast<int>(agree(runs_in_a_row(device_, work)));
    TimedWork timed(device_, {[&] {
                        for (int i = 0; i < in_a_row; ++i) work();
                    }},
                    has_upload);
    const double first = agree(timed.run()[0]);
    const int runs = static_cast<int>(
        std::clamp(seconds / std::max(first, 1e-9), double{kMinRuns}, double{kMaxRuns}));
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
                                  : kTimesSlower * slowest * kPasses * (kRunsBefore + kMinRuns) +
                                        kTimesLarger * setup_seconds;
        if (left <= needed) {
            if (!one.of_model && !all.empty()) break;
            OperationRate skipped = describe(one, precision, ops::Pass::forward);
            skipped.bytes = forward_bytes(one, precision.compute);
            skipped.seconds = skipped.flops_per_second = {std::nullopt, "no time was left"};
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

std::vector<AllReduceRate> measure_all_reduce(RateMeter& meter, const SummingRanks& ranks,
                                              double seconds) {
    std::vector<std::unique_ptr<SumBench>> benches;
    for (const std::size_t bytes : kSizes) {
        benches.push_back(std::make_unique<SumBench>(meter, ranks, bytes));
    }
    const double each = seconds / static_cast<double>(kSizes.size());
    std::vector<AllReduceRate> rates;
    double before = 0;
    for (std::size_t index = 0; index < kSizes.size(); ++index) {
        // The time grows at most by the same factor as the size.
        const double growth = static_cast<double>(kSizes[index]) /
                              static_cast<double>(kSizes[index == 0 ? 0 : index - 1]);
        if (rates.size() >= 2 && growth * before > seconds) break;
        const double first = benches[index]->run();
        const int sums = static_cast<int>(
            std::clamp(each / std::max(first, 1e-9), double{kMinSums}, double{kMaxSums}));
        before = median_seconds(sums, [&] { return benches[index]->run(); });
        const auto bytes = static_cast<double>(kSizes[index]);
        rates.push_back({ranks.scope, ranks.group.size(), bytes, before, bytes / before});
    }
    return rates;
}

AllReduceFit fit(const std::vector<AllReduceRate>& rates, const std::string& backend) {
    AllReduceFit line{.backend = backend,
                      .latency_seconds = {std::nullopt, "fewer than two sizes were measured"},
                      .bytes_per_second = {std::nullopt, "fewer than two sizes were measured"}};
    if (rates.empty()) return line;
    line.scope = rates.front().scope;
    line.ranks = rates.front().ranks;
    if (rates.size() < 2) return line;
    // Uses both ends, as buckets of gradients are large and BatchNorm statistics small. Caches bend
    // the curve in between.
    const AllReduceRate &small = rates.front(), &large = rates.back();
    const double slope = (large.seconds - small.seconds) / (large.bytes - small.bytes);
    if (!(slope > 0)) {
        line.latency_seconds =
            line.bytes_per_second = {std::nullopt, "times do not grow with the bytes"};
        return line;
    }
    line.latency_seconds = {std::max(0.0, small.seconds - slope * small.bytes), ""};
    line.bytes_per_second = {1 / slope, ""};
    return line;
}

}  // namespace hpcai::speed
