// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/median.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/context/devices.hpp>
#include <hpcai/device/cpu_device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/group/autotune_log.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/report/plots.hpp>
#include <hpcai/speed/bench.hpp>
#include <hpcai/speed/roofline.hpp>
#include <hpcai/training/step_log.hpp>
#include <hpcai/training/step_runner.hpp>

#include "operation_bench.hpp"
#include "record_json.hpp"
#include "whole_step.hpp"

namespace hpcai::speed {
namespace {

constexpr std::int64_t kWarmupSteps = 2;
constexpr int kTimedSteps = 5;    // with a time mark after each operation
constexpr int kIsolatedRuns = 5;  // measurements of an operation alone

/// Steps of a model on one rank with one random batch in memory.
class StepBench {
public:
    explicit StepBench(const config::Config& config)
        : config_(config),
          device_(context::open_device(config, device::count_cores(), {}).device),
          precision_(
              context::choose_precision(config.training.precision, context::formats_of(*device_))),
          reducer_(comm::make_mpi_reducer(*self_)),
          step_({config, *device_, precision_, *reducer_, config.training.batch_size}),
          update_(device_->build(
              training::plan_optimizer(step_.network(), step_.store(), config.training),
              training::optimizer_tensors(step_.network(), step_.store()))) {
        autotune_log_.finish(device_->tuning());
    }

    double step() { return step_.run(); }
    const training::StepResults& results() const { return step_.results(); }

    /// Runs a step with a timeline mark after each operation, as a CUDA graph where possible.
    void timed_step() {
        if (!timed_) make_timed();
        upload_seconds_.push_back(TimedWork(*device_, {[this] { step_.upload(); }}, true).run()[0]);
        const std::vector<double> seconds = timed_->run();
        for (std::size_t index = 0; index < calls_.size(); ++index) {
            call_seconds_[index].push_back(seconds[index]);
        }
        update_seconds_.push_back(seconds.back());
    }

    const training::StepLog& step_log() const { return step_.log(); }

    /// Returns the median seconds of a clock reading, with its share of the time to log a step.
    double reading_seconds() {
        constexpr int kSteps = 1000;
        return median_seconds(kIsolatedRuns, [&] {
            training::StepLog idle({[this] { return clock_.seconds(); }}, *device_);
            idle.reserve(kSteps);
            idle.set_communication_clock([this] { return step_.communication_seconds(); });
            const Stopwatch watch;
            idle.begin();
            for (int step = 0; step < kSteps; ++step) {
                for (const training::Phase phase :
                     {training::Phase::input_wait, training::Phase::forward,
                      training::Phase::backward, training::Phase::communication,
                      training::Phase::optimizer, training::Phase::other}) {
                    idle.enter(phase);
                }
                idle.end_step({}, true);
            }
            return watch.seconds() / static_cast<double>(idle.readings());
        });
    }

    std::vector<BenchOperation> operations() {
        std::vector<BenchOperation> all{{"input", "upload", "forward", median(upload_seconds_),
                                         isolated_seconds([&] { step_.upload(); }, true)}};
        for (std::size_t index = 0; index < calls_.size(); ++index) {
            const graph::KernelCall& call = calls_[index];
            all.push_back({call.name, "", std::string(name_of(call.pass)),
                           median(call_seconds_[index]),
                           isolated_seconds([&] { call.kernel->run(call.pass); })});
            describe(call, all.back());
        }
        all.push_back({"parameters", config::value_text(config_, "training.optimizer"), "update",
                       median(update_seconds_), isolated_seconds([&] { update_->run(); })});
        return all;
    }

    Logger& log() { return *log_; }
    const device::Device& device() const { return *device_; }
    const device::Precision& precision() const { return precision_; }

private:
    /// Call it after the first steps: libraries may allocate in these, but not in a CUDA graph.
    void make_timed() {
        std::vector<Work> pieces;
        for (const graph::KernelCall& call : calls_) {
            pieces.emplace_back([&call] { call.kernel->run(call.pass); });
        }
        pieces.emplace_back([this] { update_->run(); });
        timed_.emplace(*device_, std::move(pieces));
    }

    /// Returns the median seconds of `work` alone, repeated if too short for the device's clock.
    double isolated_seconds(const Work& work, bool is_upload = false) {
        work();  // warms the caches
        const int in_a_row = is_upload ? 1 : runs_in_a_row(*device_, work);
        TimedWork timed(*device_, {[&] {
            for (int i = 0; i < in_a_row; ++i) work();
        }},
                        is_upload);
        return median_seconds(kIsolatedRuns, [&] { return timed.run()[0] / in_a_row; });
    }

    void describe(const graph::KernelCall& call, BenchOperation& operation) const {
        const graph::Graph& graph = step_.network().graph();
        const auto node = std::ranges::find(graph.nodes(), call.name, &graph::Node::name);
        operation.operation = "gradient_accumulator";  // only its calls have no graph node
        if (node == graph.nodes().end()) return;
        operation.operation = ops::name_of(node->operation);
        operation.moved_bytes =
            metrics::moved_bytes(graph, *node, call.pass, step_.network().compute());
        operation.flops = flops_in(graph::flops(graph, *node, metrics::kOfficialLedger), call.pass);
    }

    const config::Config& config_;
    std::unique_ptr<comm::Communicator> self_ = comm::make_self_communicator();
    std::unique_ptr<device::Device> device_;
    device::Precision precision_;
    std::unique_ptr<Logger> log_{make_logger("bench", "")};
    group::AutotuneLog autotune_log_{device_->tuning(), *log_};
    std::unique_ptr<comm::GradientReducer> reducer_;
    const Stopwatch clock_;
    WholeStep step_;
    std::unique_ptr<device::Update> update_;
    std::vector<graph::KernelCall> calls_{step_.network().calls()};  // of a step
    std::vector<std::vector<double>> call_seconds_{calls_.size()};   // [call][timed step]
    std::optional<TimedWork> timed_;
    std::vector<double> upload_seconds_, update_seconds_;  // [timed step]
};

constexpr std::size_t kSlowestShown = 10;
constexpr std::size_t kNameWidth = 22;  // of an operation, in columns

/// Returns amount / seconds in units of `unit`; "-" if either number is unknown.
std::string rate(double amount, double seconds, double unit) {
    return amount > 0 && seconds > 0 ? fmt::format("{:.4g}", amount / seconds / unit) : "-";
}

std::string interval_line(const BenchReport& report) {
    if (!report.low_step_seconds.value) return "";
    return fmt::format("          {:.4f} to {:.4f} s with 95 % confidence\n",
                       *report.low_step_seconds.value, *report.high_step_seconds.value);
}

/// Returns the row of an operation. A name that is longer than its column has its own line.
std::string row(const BenchOperation& operation, double step_seconds) {
    const bool is_long = operation.name.size() > kNameWidth;
    return fmt::format("{}{:<{}} {:<15} {:>8.3f} {:>8.3f} {:>5.1f} {:>7} {:>8}\n",
                       is_long ? operation.name + "\n" : "", is_long ? "" : operation.name,
                       kNameWidth, operation.pass, 1e3 * operation.in_step_seconds,
                       1e3 * operation.alone_seconds,
                       100 * operation.in_step_seconds / step_seconds,
                       rate(operation.moved_bytes, operation.in_step_seconds, 1e9),
                       rate(operation.flops, operation.in_step_seconds, 1e12));
}

}  // namespace

BenchReport run_bench(const config::Config& config, std::int64_t steps) {
    require(steps >= 1 && steps <= 1000, ExitCode::usage,
            "--steps: expected an integer from 1 to 1000, got {}", steps);
    StepBench bench(config);
    const CoreWait core_wait;
    for (std::int64_t step = 0; step < kWarmupSteps; ++step) bench.step();
    std::vector<double> seconds;
    for (std::int64_t step = 0; step < steps; ++step) seconds.push_back(bench.step());
    for (int step = 0; step < kTimedSteps; ++step) bench.timed_step();

    BenchReport report;
    report.device = bench.device().description();
    report.model = config::value_text(config, "workload.model");
    report.precision = name_of(bench.precision());
    report.batch_size = config.training.batch_size;
    report.image_size = config.workload.image_size;
    report.image_width = image_width(config);
    report.steps = steps;
    report.clock_readings_per_step =
        bench.step_log().readings() / std::ssize(bench.step_log().steps());
    report.measuring_seconds_per_step =
        static_cast<double>(report.clock_readings_per_step) * bench.reading_seconds();
    report.fastest_step_seconds = *std::min_element(seconds.begin(), seconds.end());
    const MedianInterval interval = median_interval(std::move(seconds));
    report.step_seconds = interval.median;
    std::tie(report.low_step_seconds, report.high_step_seconds) = bounds_of(interval);
    report.loss = bench.results().loss_sum / static_cast<double>(bench.results().samples);
    report.skipped_steps = bench.results().skipped_steps;
    report.operations = bench.operations();
    for (const BenchOperation& operation : report.operations) {
        report.alone_sum_seconds += operation.alone_seconds;
    }
    core_wait.log(bench.log());
    report.images_per_second = static_cast<double>(report.batch_size) / report.step_seconds;
    const metrics::FlopsLedger ledger(models::make_model(config));
    report.flops = report.images_per_second *
                   static_cast<double>(ledger.training_per_sample(metrics::kOfficialLedger));
    return report;
}

std::string bench_text(const BenchReport& report) {
    std::string text =
        wrap(fmt::format("{} {} batch {} at {} x {} on {}", report.model, report.precision,
                         report.batch_size, report.image_size, report.image_width, report.device),
             10);
    text += fmt::format(
        "\nstep      {:.4f} s median of {} (fastest {:.4f} s)\n{}"
        "alone     {:.4f} s sum of the operations, step / sum = {:.3f}\n"
        "speed     {:.2f} images/s, {} by table3\n"
        "loss      {:.6g} mean, {} skipped\n"
        "measuring {:.2e} s per step, {}: {:.5f} % of the step\n\n",
        report.step_seconds, report.steps, report.fastest_step_seconds, interval_line(report),
        report.alone_sum_seconds, report.step_seconds / report.alone_sum_seconds,
        report.images_per_second, format_si(report.flops, "FLOPS"), report.loss,
        counted(report.skipped_steps, "step"), report.measuring_seconds_per_step,
        counted(report.clock_readings_per_step, "clock reading"),
        100 * report.measuring_seconds_per_step / report.step_seconds);
    const std::string header =
        fmt::format("{:<{}} {:<15} {:>8} {:>8} {:>5} {:>7} {:>8}\n", "operation", kNameWidth,
                    "pass", "step, ms", "alone", "%", "GB/s", "TFLOP/s");
    std::map<std::pair<std::string, std::string>, BenchOperation> sums;
    for (const BenchOperation& operation : report.operations) {
        BenchOperation& sum = sums[{operation.operation, operation.pass}];
        sum.name = operation.operation;
        sum.pass = operation.pass;
        sum.in_step_seconds += operation.in_step_seconds;
        sum.alone_seconds += operation.alone_seconds;
        sum.flops += operation.flops;
        sum.moved_bytes += operation.moved_bytes;
    }
    text += header;
    for (const auto& [key, sum] : sums) text += row(sum, report.step_seconds);
    std::vector<BenchOperation> slowest = report.operations;
    std::ranges::sort(slowest, std::ranges::greater{}, &BenchOperation::in_step_seconds);
    slowest.resize(std::min(slowest.size(), kSlowestShown));
    text += fmt::format("\nthe {} slowest operations\n{}", slowest.size(), header);
    for (const BenchOperation& operation : slowest) text += row(operation, report.step_seconds);
    return text;
}

std::string bench_json(const BenchReport& report) {
    return nlohmann::ordered_json(report).dump(2) + "\n";
}

std::string bench_svg(const BenchReport& report, const RooflineRecord& roofline) {
    report::RooflinePlot plot;
    plot.title = fmt::format("{} {}, {} samples of {} x {}", report.model, report.precision,
                             report.batch_size, report.image_size, report.image_width);
    const CeilingRecord ceiling = ceiling_from(roofline.operations, report.precision);
    require(ceiling.ceiling_flops.value.has_value(), ExitCode::data,
            "roofline file: expected rates in {}, got none; measure it with training.precision {}",
            report.precision, report.precision);
    if (ceiling.gemm_flops.value) {
        plot.ceilings.push_back({"large matrix product", *ceiling.gemm_flops.value});
    }
    if (ceiling.model_convolution_flops.value) {
        plot.ceilings.push_back(
            {"the model's fastest convolution", *ceiling.model_convolution_flops.value});
    }
    plot.memory_bytes_per_second = no_value("not in the file");
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
