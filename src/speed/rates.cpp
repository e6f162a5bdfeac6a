// SPDX-License-Identifier: Apache-2.0
#include "rates.hpp"

#include <hpcai/base/median.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/models/make_model.hpp>

#include "operation_bench.hpp"
#include "whole_step.hpp"

namespace hpcai::speed {
namespace {

constexpr int kWarmupRuns = 4;  // runs on a GPU before the first run that counts
constexpr int kMinRuns = 3;
constexpr int kMaxRuns = 15;
// Run time and setup time grow at most by these factors from one large operation to the next,
// a product of matrices of twice the side, or a convolution of eight times the samples.
constexpr double kMaxTimeGrowth = 8, kMaxSetupGrowth = 8;

double flops_of(const ops::Operation& operation, ops::Pass pass) {
    return flops_in(ops::flops(operation, ops::Ledger::two_mac, false), pass);
}

OperationRate make_rate(const MeasuredOperation& measured, const device::Precision& precision,
                        ops::Pass pass) {
    OperationRate rate;
    rate.name = measured.name;
    rate.operation = ops::name_of(measured.operation);
    rate.precision = name_of(precision);
    rate.pass = name_of(pass);
    rate.shape = shape_text(measured.operation);
    rate.of_model = measured.is_of_model;
    rate.nodes = measured.nodes;
    rate.flops = flops_of(measured.operation, pass);
    return rate;
}

struct PassRates {
    std::vector<OperationRate> rates;
    double setup_seconds = 0;  // of kernels and inputs
};

/// Measures one operation, for about `seconds` per pass.
PassRates measure_passes(RateMeter& meter, const MeasuredOperation& operation,
                         const device::Precision& precision, double seconds) {
    const double begin_seconds = meter.elapsed_seconds();
    std::unique_ptr<OperationBench> bench;
    comm::collective_try(meter.everyone(), [&] {
        bench = std::make_unique<OperationBench>(
            operation.operation,
            OperationBench::Setup{meter.device(), precision, device::Mode::training,
                                  operation.needs_input_gradient});
    });
    PassRates measured{{}, meter.elapsed_seconds() - begin_seconds};
    for (const ops::Pass pass : bench->passes()) {
        OperationRate rate = make_rate(operation, precision, pass);
        rate.bytes = metrics::moved_bytes(bench->graph(), bench->node(), pass, precision.compute);
        const double run_seconds = meter.measure([&] { bench->run(pass); }, seconds);
        rate.seconds = {run_seconds, ""};
        rate.flops_per_second = {rate.flops / run_seconds, ""};
        measured.rates.push_back(std::move(rate));
    }
    return measured;
}

double forward_bytes(const MeasuredOperation& measured, tensor::DType compute) {
    const auto graph = make_operation_graph(measured.operation, measured.needs_input_gradient);
    return metrics::moved_bytes(graph, graph.nodes().front(), ops::Pass::forward, compute);
}

constexpr std::array<std::size_t, 5> kAllReduceBytes{std::size_t{4} << 10, std::size_t{64} << 10,
                                                     std::size_t{1} << 20, std::size_t{16} << 20,
                                                     std::size_t{64} << 20};
constexpr int kMinCalls = 3;  // of an all-reduce
constexpr int kMaxCalls = 20;

/// The gradients of one all-reduce in the memory of the device.
struct AllReduceBench {
    AllReduceBench(RateMeter& meter, const AllReduceRanks& ranks, std::size_t bytes)
        : memory(meter.device().allocate(bytes)),
          values(static_cast<float*>(memory->data()), bytes / sizeof(float)) {
        ranks.reducer.prepare(values);
    }

    /// Returns the seconds of one all-reduce on the slowest rank, after a barrier.
    double run(RateMeter& meter, const AllReduceRanks& ranks) const {
        meter.device().synchronize();
        ranks.group.barrier();
        const Stopwatch watch;
        ranks.reducer.start_all_reduce(values)->wait();
        ranks.reducer.check();
        meter.device().synchronize();
        ranks.reducer.end_step();
        return meter.max_over_ranks(watch.seconds());
    }

    std::unique_ptr<device::Memory> memory;
    std::span<float> values;
};

/// Measures steps of `setup`. Returns the median of their seconds, each on its slowest rank, and
/// sets `gradient_bytes`.
double measure_step(RateMeter& meter, const WholeStep::Setup& setup, double seconds,
                    std::int64_t& gradient_bytes) {
    constexpr double kMinSteps = 1, kMaxSteps = 15;
    std::unique_ptr<WholeStep> step;
    comm::collective_try(meter.everyone(), [&] { step = std::make_unique<WholeStep>(setup); });
    const double first = meter.max_over_ranks(step->run());  // the first step may allocate
    const int steps = static_cast<int>(std::clamp(seconds / first, kMinSteps, kMaxSteps));
    std::vector<double> step_seconds;
    for (int i = 0; i < steps; ++i) {
        step_seconds.push_back(meter.max_over_ranks(step->run()));
        if (meter.is_time_over()) break;
    }
    gradient_bytes = static_cast<std::int64_t>(step->store().gradients().size_bytes());
    return median(std::move(step_seconds));
}

}  // namespace

double RateMeter::max_over_ranks(double value) {
    everyone_.all_reduce_max(std::span(&value, 1));
    return value;
}

double RateMeter::mean_over_ranks(double value) {
    everyone_.all_reduce_sum(std::span(&value, 1));
    return value / everyone_.size();
}

void RateMeter::share_left(std::size_t parts,
                           const std::function<void(std::size_t, double)>& measure) {
    for (std::size_t part = 0; part < parts; ++part) {
        const double left = seconds_ - elapsed_seconds();
        if (left <= 0) return;
        measure(part, left / static_cast<double>(parts - part));
    }
}

double RateMeter::measure(const std::function<void()>& work, double seconds, bool has_upload) {
    // All ranks make the same number of runs, because they may wait for each other.
    const int in_a_row =
        has_upload ? 1 : static_cast<int>(max_over_ranks(runs_in_a_row(device_, work)));
    TimedWork timed(device_, {[&] {
                        for (int i = 0; i < in_a_row; ++i) work();
                    }},
                    has_upload);
    const double first = max_over_ranks(timed.run()[0]);
    const int runs = static_cast<int>(
        std::clamp(seconds / std::max(first, 1e-9), double{kMinRuns}, double{kMaxRuns}));
    return mean_over_ranks(median_seconds(runs, [&] { return timed.run()[0] / in_a_row; }));
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

bool is_mostly_padded(const std::string& shape) {
    double height = 0, width = 0, kernel = 0;
    const int found = std::sscanf(shape.c_str(), "%*f x %lf x %lf x %*f, %*f filters of %lf",
                                  &height, &width, &kernel);
    return found == 3 && kernel > 1 && 2 * kernel > std::min(height, width);
}

std::vector<MeasuredOperation> operations_of_model(const config::Config& config, int samples,
                                                   tensor::DType compute) {
    const graph::Graph model = models::make_model(config, {.batch = samples});
    std::vector<MeasuredOperation> operations;
    std::map<std::string, std::size_t> indices;
    for (const graph::Node& node : model.nodes()) {
        if (!ops::is_one_of<ops::Convolution, ops::Linear>(node.operation)) continue;
        const auto [entry, is_new] = indices.emplace(shape_text(node.operation), operations.size());
        if (is_new) {
            operations.push_back(
                {node.name, node.operation, true, 0, !model.needs_no_input_gradient(node)});
        }
        ++operations[entry->second].nodes;
    }
    std::ranges::stable_sort(operations, std::ranges::greater{},
                             [&](const MeasuredOperation& measured) {
                                 return flops_of(measured.operation, ops::Pass::forward) /
                                        forward_bytes(measured, compute);
                             });
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
    const double seconds_per_pass =
        seconds / (kPasses * static_cast<double>(std::max<std::size_t>(operations.size(), 1)));
    std::vector<OperationRate> rates;
    double slowest = 0, setup_seconds = 0;
    for (const MeasuredOperation& operation : operations) {
        const double left = end - meter.elapsed_seconds();
        const double needed = operation.is_of_model
                                  ? 0
                                  : kMaxTimeGrowth * slowest * kPasses * (kWarmupRuns + kMinRuns) +
                                        kMaxSetupGrowth * setup_seconds;
        if (left <= needed) {
            if (!operation.is_of_model && !rates.empty()) break;
            OperationRate skipped = make_rate(operation, precision, ops::Pass::forward);
            skipped.bytes = forward_bytes(operation, precision.compute);
            skipped.seconds = skipped.flops_per_second = no_value("no time was left");
            rates.push_back(std::move(skipped));
            continue;
        }
        const PassRates measured = measure_passes(meter, operation, precision, seconds_per_pass);
        for (const OperationRate& rate : measured.rates)
            slowest = std::max(slowest, *rate.seconds.value);
        setup_seconds = measured.setup_seconds;
        rates.insert(rates.end(), measured.rates.begin(), measured.rates.end());
    }
    return rates;
}

std::vector<AllReduceRate> measure_all_reduce(RateMeter& meter, const AllReduceRanks& ranks,
                                              double seconds) {
    std::vector<AllReduceBench> benches;
    for (const std::size_t bytes : kAllReduceBytes) benches.emplace_back(meter, ranks, bytes);
    const double seconds_per_size = seconds / static_cast<double>(kAllReduceBytes.size());
    std::vector<AllReduceRate> rates;
    double previous_seconds = 0;
    for (std::size_t index = 0; index < kAllReduceBytes.size(); ++index) {
        // The time grows at most in proportion to the size.
        const double growth = static_cast<double>(kAllReduceBytes[index]) /
                              static_cast<double>(kAllReduceBytes[index == 0 ? 0 : index - 1]);
        if (rates.size() >= 2 && growth * previous_seconds > seconds) break;
        const auto run = [&] { return benches[index].run(meter, ranks); };
        const double first = run();
        const int calls = static_cast<int>(std::clamp(seconds_per_size / std::max(first, 1e-9),
                                                      double{kMinCalls}, double{kMaxCalls}));
        previous_seconds = median_seconds(calls, run);
        const auto bytes = static_cast<double>(kAllReduceBytes[index]);
        rates.push_back(
            {ranks.scope, ranks.group.size(), bytes, previous_seconds, bytes / previous_seconds});
    }
    return rates;
}

AllReduceFit fit(const std::vector<AllReduceRate>& rates, const std::string& backend) {
    AllReduceFit line{.backend = backend};
    line.latency_seconds = line.bytes_per_second = no_value("fewer than two sizes were measured");
    if (rates.empty()) return line;
    line.scope = rates.front().scope;
    line.ranks = rates.front().ranks;
    if (rates.size() < 2) return line;
    // Sizes in between are not used, because caches make their times nonlinear in the size.
    const AllReduceRate &small = rates.front(), &large = rates.back();
    const double slope = (large.seconds - small.seconds) / (large.bytes - small.bytes);
    if (!(slope > 0)) {
        line.latency_seconds = line.bytes_per_second = no_value("times do not grow with the bytes");
        return line;
    }
    line.latency_seconds = {std::max(0.0, small.seconds - slope * small.bytes), ""};
    line.bytes_per_second = {1 / slope, ""};
    return line;
}

CalibrationRecord calibrate(RateMeter& meter, const CalibrationSetup& setup, double seconds) {
    CalibrationRecord record;
    const config::Config& config = setup.config;
    record.model = config::value_text(config, "workload.model");
    record.precision = name_of(setup.precision);
    record.optimizer = config::value_text(config, "training.optimizer");
    record.image_size = config.workload.image_size;
    record.image_width = image_width(config);
    record.training_flops_per_sample = metrics::FlopsLedger(models::make_model(config))
                                           .training_per_sample(metrics::kOfficialLedger);
    const auto self = comm::make_self_communicator();
    const auto self_reducer = comm::make_mpi_reducer(*self);
    if (setup.reducer != nullptr) record.sums = setup.reducer->description();
    const double part_seconds = seconds / (setup.reducer != nullptr ? 6 : 3);
    const double end_seconds = 0.75 * meter.limit_seconds();  // leaves time for operations
    double needed_seconds = 0;  // estimate for two steps with twice the samples
    for (const int divisor : {4, 2, 1}) {
        const int samples = setup.samples / divisor;
        if (samples == 0) continue;
        if (needed_seconds > 0 && meter.elapsed_seconds() + needed_seconds > end_seconds) {
            record.reason += fmt::format(
                "{}{} samples", record.reason.empty() ? "no time was left for " : " and ", samples);
            continue;
        }
        const auto measure = [&](comm::GradientReducer& reducer) {
            return measure_step(meter, {config, meter.device(), setup.precision, reducer, samples},
                                part_seconds, record.gradient_bytes);
        };
        CalibrationPoint& point = record.points.emplace_back();
        point = {samples, measure(*self_reducer), no_value("there is only one rank")};
        if (setup.reducer != nullptr) point.summed_step_seconds = {measure(*setup.reducer), ""};
        needed_seconds = 4 * (point.step_seconds + point.summed_step_seconds.value.value_or(0));
    }
    return record;
}

}  // namespace hpcai::speed
