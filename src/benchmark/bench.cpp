// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/benchmark/bench.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/graph/fuse_for.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/metrics/timing.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/training/initialize.hpp>
#include <hpcai/training/step_log.hpp>
#include <hpcai/training/training_step.hpp>

#include "random_batch.hpp"
#include "start.hpp"
#include "tuning_note.hpp"

namespace hpcai::benchmark {
namespace {

constexpr std::int64_t kWarmupSteps = 2;
constexpr int kTimedSteps = 5;
constexpr int kAloneRuns = 5;

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

using Work = std::function<void()>;

/// Pieces of work timed by the device's clock, which sees no time of launches where they are
/// recorded.
class TimedWork {
public:
    /// `pieces` enqueue work; with an upload among them they cannot be recorded.
    TimedWork(device::Device& device, std::vector<Work> pieces, bool has_upload = false)
        : device_(device), pieces_(std::move(pieces)) {
        if (has_upload || !device.records()) return;
        timeline_ = device.make_timeline();
        recording_ = device.record([this] { enqueue(); });
    }
    TimedWork(const TimedWork&) = delete;
    TimedWork& operator=(const TimedWork&) = delete;

    /// Does the work; seconds of each piece.
    std::vector<double> run() {
        if (recording_ != nullptr) {
            recording_->run();
        } else {
            timeline_ = device_.make_timeline();
            enqueue();
        }
        return timeline_->seconds();
    }

private:
    void enqueue() {
        timeline_->mark();
        for (const Work& piece : pieces_) {
            piece();
            timeline_->mark();
        }
    }

    device::Device& device_;
    std::vector<Work> pieces_;
    std::unique_ptr<device::Timeline> timeline_;
    std::unique_ptr<device::Recording> recording_;  // goes before its marks
};

/// A model on one rank with a batch of random pixels in memory, and whole steps of it.
class StepBench {
public:
    explicit StepBench(const config::Config& config)
        : config_(config),
          device_(open_device(config, device::count_cores(), {}).device),
          precision_(choose_precision(config.training.precision, *device_)),
          graph_(models::make_model(config, {.batch = config.training.batch_size})),
          store_(graph_, *device_, config::optimizer_states(config.training.optimizer)),
          network_(config.training.fusion ? graph::fuse_for(graph_, *device_, options()) : graph_,
                   *device_, store_, options()),
          reducer_(comm::make_mpi_reducer(*self_)),
          phases_({[this] { return clock_.seconds(); }}, *device_),
          step_({config, network_, *device_, store_, *reducer_, &phases_}),
          update_(device_->build(training::plan_optimizer(network_, store_, config.training),
                                 training::optimizer_tensors(network_, store_))),
          timing_(network_.graph(), [this] { return now_; }),
          batch_(graph_, config.workload.classes, config.run.seed) {
        note_.finish(device::tuning_of(*device_));
        training::initialize(graph_, config.run.seed, 0, store_);
        phases_.count_communication([this] { return step_.communication_seconds(); });
    }

    /// Seconds of a whole step, as the trainer takes it: of several between two readings where the
    /// device is not waited for after each.
    double step() {
        const std::int64_t steps = step_.steps_between_readings();
        const Stopwatch watch;
        phases_.begin();
        for (std::int64_t i = 0; i < steps; ++i) {
            phases_.enter(training::Phase::input_wait);
            phases_.enter(training::Phase::forward);
            upload();
            step_.run(kRate);
            const bool is_last = i + 1 == steps;
            if (is_last) step_.read();
            phases_.end_step({}, is_last);
        }
        return watch.seconds() / static_cast<double>(steps);
    }

    /// A step with a mark behind each operation, recorded as the trainer does where it can be.
    void timed_step() {
        if (!timed_) make_timed();
        upload_seconds_.push_back(TimedWork(*device_, {[this] { upload(); }}, true).run()[0]);
        const std::vector<double> seconds = timed_->run();
        for (std::size_t index = 0; index < steps_.size(); ++index) {
            timing_.before(steps_[index]);
            now_ += seconds[index];
            timing_.after(steps_[index]);
        }
        update_seconds_.push_back(seconds.back());
    }

    /// Of the clocks for phases, in the steps so far.
    std::int64_t readings_per_step() const {
        return phases_.readings() / std::ssize(phases_.steps());
    }

    /// Median seconds of one reading of them, with its share of what else is kept of a step.
    double reading_seconds() {
        constexpr int kSteps = 1000;
        std::vector<double> seconds;
        for (int run = 0; run < kAloneRuns; ++run) {
            training::StepLog idle({[this] { return clock_.seconds(); }}, *device_);
            idle.reserve(kSteps);
            idle.count_communication([this] { return step_.communication_seconds(); });
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
            seconds.push_back(watch.seconds() / static_cast<double>(idle.readings()));
        }
        return median(std::move(seconds));
    }

    std::vector<BenchOperation> operations() {
        std::map<std::pair<std::string, ops::Pass>, double> in_step;
        for (const metrics::OperationTime& time : timing_.by_node()) {
            in_step[{time.name, time.pass}] = time.median_seconds;
        }
        std::vector<BenchOperation> all{{"input", "upload", "forward", median(upload_seconds_),
                                         alone([&] { upload(); }, true)}};
        for (const graph::Step& step : steps_) {
            all.push_back({step.name, operation_of(step.name), std::string(name_of(step.pass)),
                           in_step[{step.name, step.pass}],
                           alone([&] { step.kernel->run(step.pass); })});
        }
        all.push_back({"parameters", config::value_text(config_, "training.optimizer"), "update",
                       median(update_seconds_), alone([&] { update_->run(); })});
        return all;
    }

    const device::Device& device() const { return *device_; }
    const device::Precision& precision() const { return precision_; }

private:
    // Small, so that random labels do not drive the numbers away during a long measurement.
    static constexpr double kRate = 1e-4;

    graph::NetworkOptions options() const {
        return {.compute = precision_.compute, .tf32 = precision_.tf32, .int8 = precision_.int8};
    }

    void upload() { batch_.feed(network_); }

    /// After the first steps, in which libraries may allocate.
    void make_timed() {
        std::vector<Work> pieces;
        for (const graph::Step& step : steps_) {
            pieces.emplace_back([&step] { step.kernel->run(step.pass); });
        }
        pieces.emplace_back([this] { update_->run(); });
        timed_.emplace(*device_, std::move(pieces));
    }

    /// Median seconds of `work`, run by itself: several times in a row where a clock's step is as
    /// long as the work.
    double alone(const Work& work, bool is_upload = false) {
        const int in_a_row = device_->records() ? 20 : 1;
        work();  // brings its memory into the caches' usual state
        TimedWork timed(*device_, {[&] {
            for (int i = 0; i < in_a_row; ++i) work();
        }},
                        is_upload);
        std::vector<double> seconds;
        for (int run = 0; run < kAloneRuns; ++run) {
            seconds.push_back(timed.run()[0] / in_a_row);
        }
        return median(std::move(seconds));
    }

    std::string operation_of(const std::string& node) const {
        for (const graph::Node& one : network_.graph().nodes()) {
            if (one.name == node) return std::string(ops::name_of(one.operation));
        }
        return "gradient_sum";
    }

    const config::Config& config_;
    std::unique_ptr<comm::Communicator> self_ = comm::make_self_communicator();
    std::unique_ptr<device::Device> device_;
    device::Precision precision_;
    graph::Graph graph_;
    graph::ParameterStore store_;
    std::unique_ptr<Logger> log_{make_logger("bench", "")};
    TuningNote note_{device::tuning_of(*device_), *log_};
    graph::Network network_;
    std::unique_ptr<comm::GradientReducer> reducer_;
    const Stopwatch clock_;
    training::StepLog phases_;
    training::TrainingStep step_;
    std::unique_ptr<device::Update> update_;
    std::vector<graph::Step> steps_{network_.steps()};
    std::optional<TimedWork> timed_;
    double now_ = 0;  // on the clock that `timing_` is shown
    metrics::TimingObserver timing_;
    RandomBatch batch_;
    std::vector<double> upload_seconds_, update_seconds_;
};

}  // namespace

BenchReport run_bench(const config::Config& config, std::int64_t steps) {
    require(steps >= 1, ExitCode::usage, "--steps: expected an integer, at least 1, got {}", steps);
    StepBench bench(config);
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
    report.clock_readings_per_step = bench.readings_per_step();
    report.measuring_seconds_per_step =
        static_cast<double>(report.clock_readings_per_step) * bench.reading_seconds();
    report.fastest_step_seconds = *std::min_element(seconds.begin(), seconds.end());
    report.step_seconds = median(std::move(seconds));
    report.operations = bench.operations();
    for (const BenchOperation& one : report.operations) {
        report.alone_sum_seconds += one.alone_seconds;
    }
    report.images_per_second = static_cast<double>(report.batch_size) / report.step_seconds;
    const metrics::FlopsLedger ledger(models::make_model(config));
    report.flops = report.images_per_second *
                   static_cast<double>(ledger.training_per_sample(metrics::kOfficialLedger));
    return report;
}

}  // namespace hpcai::benchmark
