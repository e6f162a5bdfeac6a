// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>
#include <hpcai/benchmark/bench.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/metrics/timing.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/training/initialize.hpp>
#include <hpcai/training/trainer.hpp>

#include "start.hpp"

namespace hpcai::benchmark {
namespace {

constexpr std::int64_t kWarmupSteps = 2;
constexpr int kAloneRuns = 5;

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

double median_seconds(int runs, const std::function<void()>& work) {
    std::vector<double> seconds;
    work();  // brings its memory into the caches' usual state
    for (int run = 0; run < runs; ++run) {
        const Stopwatch watch;
        work();
        seconds.push_back(watch.seconds());
    }
    return median(std::move(seconds));
}

/// A model on one rank with a batch of random pixels in memory, and whole steps of it.
class StepBench {
public:
    explicit StepBench(const config::Config& config)
        : config_(config),
          device_(open_device(config, device::count_cores(), 1)),
          compute_(choose_precision(config.training.precision, *device_)),
          graph_(models::make_model(config, config.training.batch_size)),
          store_(graph_, *device_),
          network_(config.training.fusion ? graph::fuse(graph_) : graph_, *device_, store_,
                   {device::Mode::training, compute_}),
          optimizer_(graph_, store_, config.training),
          timing_(network_.graph()) {
        training::initialize(graph_, config.run.seed, 0, store_);
        network_.set_loss_scale(1.0f / static_cast<float>(config.training.batch_size));
        const std::int64_t pixels =
            graph_.value(graph_.find("images")).shape.elements() / config.training.batch_size;
        for (int row = 0; row < config.training.batch_size; ++row) {
            CounterStream random(config.run.seed, RandomPurpose::synthetic_data,
                                 static_cast<std::uint32_t>(row));
            for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
                images_.push_back(static_cast<std::uint8_t>(random.next_u32()));
            }
            labels_.push_back(row % config.workload.classes);
        }
    }

    void upload() {
        network_.set_input("images", std::as_bytes(std::span(images_)));
        network_.set_input("labels", std::as_bytes(std::span(labels_)));
    }
    void optimize() { optimizer_.step(kRate, *device_, store_); }

    /// Seconds of one whole step.
    double step() {
        const Stopwatch watch;
        upload();
        upload_seconds_.push_back(watch.seconds());
        network_.prepare(timing_);
        network_.forward(timing_);
        network_.backward(timing_);
        const double before = watch.seconds();
        optimize();
        device_->synchronize();
        optimize_seconds_.push_back(watch.seconds() - before);
        return watch.seconds();
    }

    void forget_times() {
        timing_.clear();
        upload_seconds_.clear();
        optimize_seconds_.clear();
    }

    std::vector<BenchOperation> operations() {
        std::map<std::pair<std::string, ops::Pass>, double> in_step;
        for (const metrics::OperationTime& time : timing_.by_node()) {
            in_step[{time.name, time.pass}] = time.median_seconds;
        }
        std::vector<BenchOperation> all{{"input", "upload", "forward", median(upload_seconds_),
                                         median_seconds(kAloneRuns, [&] { upload(); })}};
        for (const graph::Step& step : network_.steps()) {
            all.push_back({step.name, operation_of(step.name), std::string(name_of(step.pass)),
                           in_step[{step.name, step.pass}],
                           median_seconds(kAloneRuns, [&] { step.kernel->run(step.pass); })});
        }
        all.push_back({"parameters", "sgd", "update", median(optimize_seconds_),
                       median_seconds(kAloneRuns, [&] { optimize(); })});
        return all;
    }

    const device::Device& device() const { return *device_; }
    tensor::DType compute() const { return compute_; }

private:
    // Small, so that random labels do not drive the numbers away during a long measurement.
    static constexpr double kRate = 1e-4;

    std::string operation_of(const std::string& node) const {
        for (const graph::Node& one : network_.graph().nodes()) {
            if (one.name == node) return std::string(ops::name_of(one.operation));
        }
        return "gradient_sum";
    }

    const config::Config& config_;
    std::unique_ptr<device::Device> device_;
    tensor::DType compute_;
    graph::Graph graph_;
    graph::ParameterStore store_;
    graph::Network network_;
    training::Optimizer optimizer_;
    metrics::TimingObserver timing_;
    std::vector<std::uint8_t> images_;  // (N, H, W, C)
    std::vector<std::int32_t> labels_;  // (N)
    std::vector<double> upload_seconds_, optimize_seconds_;
};

}  // namespace

BenchReport run_bench(const config::Config& config, std::int64_t steps) {
    require(steps >= 1, ExitCode::usage, "--steps: expected an integer, at least 1, got {}", steps);
    StepBench bench(config);
    for (std::int64_t step = 0; step < kWarmupSteps; ++step) bench.step();
    bench.forget_times();
    std::vector<double> seconds;
    for (std::int64_t step = 0; step < steps; ++step) seconds.push_back(bench.step());

    BenchReport report;
    report.device = bench.device().description();
    report.model = config::value_text(config, "workload.model");
    report.precision = name_of(bench.compute());
    report.batch_size = config.training.batch_size;
    report.image_size = config.workload.image_size;
    report.steps = steps;
    report.fastest_step_seconds = *std::min_element(seconds.begin(), seconds.end());
    report.step_seconds = median(std::move(seconds));
    report.operations = bench.operations();
    for (const BenchOperation& one : report.operations) {
        report.alone_sum_seconds += one.alone_seconds;
    }
    report.images_per_second = static_cast<double>(report.batch_size) / report.step_seconds;
    const metrics::FlopsLedger ledger(models::make_model(config, 1));
    report.flops = report.images_per_second *
                   static_cast<double>(ledger.training_per_sample(metrics::kOfficialLedger));
    return report;
}

}  // namespace hpcai::benchmark
