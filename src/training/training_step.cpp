// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/training/feed.hpp>
#include <hpcai/training/training_step.hpp>

#include "step_parts.hpp"

namespace hpcai::training {
namespace {

// A first step may allocate inside the libraries, and a second shows whether it runs again.
constexpr std::int64_t kStepsBeforeRecording = 2;

/// Hands finished gradients to the buckets while the backward pass goes on.
class BucketObserver final : public graph::Observer {
public:
    BucketObserver(comm::GradientBuckets& buckets, graph::Observer& first)
        : buckets_(buckets), first_(first) {}
    void before(const graph::Step& step) override { first_.before(step); }
    void after(const graph::Step& step) override {
        first_.after(step);
        notify_buckets(step, buckets_);
    }

private:
    comm::GradientBuckets& buckets_;
    graph::Observer& first_;
};

}  // namespace

TrainingStep::TrainingStep(const StepSetup& setup)
    : device_(setup.device),
      network_(setup.network),
      store_(setup.store),
      reducer_(setup.reducer),
      loss_scale_(plan_loss_scale(setup.config.training, setup.network.compute())),
      update_(device_.build(plan_optimizer(network_, store_, setup.config.training),
                            optimizer_tensors(network_, store_))),
      buckets_(reducer_, store_.gradients_and_status(), ranges_and_status(store_),
               bucket_options(setup.config.communication), setup.before_sum),
      can_be_recorded_(setup.config.device.recording && device_.records() && !setup.before_sum &&
                       (reducer_.size() == 1 || reducer_.can_be_recorded())),
      steps_between_readings_(setup.config.run.loss_steps),
      log_(setup.log) {
    if (steps_between_readings_ == 0) steps_between_readings_ = can_be_recorded_ ? 20 : 1;
    start_loss_scale(setup.config.training, loss_scale_, device_, network_);
    checked_ = checked_gradients(network_, store_);
    watch_sums(log_, buckets_);
}

void TrainingStep::run_batch(const data::Batch* batch, double learning_rate, bool has_failed) {
    enter(log_, Phase::forward);
    if (batch != nullptr) {
        feed(network_, *batch);
        unread_samples_ += batch->samples;
    } else {
        feed_padding(network_);
    }
    run(learning_rate, has_failed);
}

void TrainingStep::run(double learning_rate, bool has_failed) {
    set_number(device_, network_, &device::StepScalars::learning_rate,
               static_cast<float>(learning_rate));
    store_.enqueue_status(has_failed ? std::numeric_limits<float>::infinity() : 0.0f);
    refresh_copies();
    if (recording_ != nullptr) {
        recording_->run();
        has_repeated_ = true;
        buckets_.repeat_step();
    } else if (can_be_recorded_ && steps_ == kStepsBeforeRecording) {
        reducer_.check();  // making a recording may wait for the device
        if (log_ != nullptr && log_->measures_phases()) timeline_ = device_.make_timeline();
        recording_ = device_.record([this] { enqueue(); });
        recording_->run();
        has_repeated_ = true;
    } else {
        enqueue();
    }
    enter(log_, Phase::other);
    reducer_.end_step();
    ++steps_;
}

void TrainingStep::refresh_copies() {
    if (prepared_ == store_.parameter_writes()) return;
    graph::Observer nobody;
    network_.prepare_copies(nobody);
    prepared_ = store_.parameter_writes();
}

void TrainingStep::enqueue() {
    graph::Observer nobody;
    graph::Observer& kernels = kernels_of(log_, nobody);
    BucketObserver observer(buckets_, kernels);
    device::StepScalars* numbers = network_.step_scalars();
    buckets_.ready(store_.ranges().size());
    mark();
    network_.prepare_rest(kernels);
    network_.forward(kernels);
    for (const std::span<const float> losses : network_.losses()) {
        device_.add_losses(losses, numbers);
    }
    mark();
    enter(log_, Phase::backward);
    network_.backward(observer);
    mark();
    enter(log_, Phase::communication);
    buckets_.finish();
    mark();
    enter(log_, Phase::optimizer);
    device_.check_finite(checked_, numbers);
    update_->run();
    device_.finish_step(loss_scale_, numbers);
    mark();
}

void TrainingStep::mark() {
    if (timeline_ != nullptr) timeline_->mark();
}

std::optional<PhaseSeconds> TrainingStep::timed_phases() {
    if (timeline_ == nullptr || !std::exchange(has_repeated_, false)) return std::nullopt;
    const std::vector<double> seconds = timeline_->seconds();
    PhaseSeconds phases;
    phases.forward = seconds.at(0);
    phases.backward = seconds.at(1);
    phases.communication = seconds.at(2);
    phases.optimizer = seconds.at(3);
    return phases;
}

double TrainingStep::communication_seconds() const {
    return host_seconds(buckets_.accounting());
}

void TrainingStep::save(Snapshot& to) {
    save_numbers(network_, to);
    save_residuals(reducer_, buckets_, store_, to);
}

void TrainingStep::restore(const Snapshot& from) {
    skipped_before_ = restore_numbers(from, device_, network_).skipped_steps;
    restore_residuals(from, reducer_, buckets_, store_);
}

StepResults TrainingStep::read() {
    reducer_.check();
    buckets_.read_times();
    const device::StepScalars numbers = network_.read_step_numbers();
    set_number(device_, network_, &device::StepScalars::loss_sum, 0.0);
    StepResults results;
    results.loss_sum = numbers.loss_sum;
    results.samples = std::exchange(unread_samples_, 0);
    results.skipped_steps = numbers.skipped_steps;
    results.has_failed = std::isinf(store_.status());
    results.loss_scale = numbers.loss_scale / loss_scale_.loss_weight;
    results.has_diverged = has_diverged(numbers, skipped_before_, loss_scale_);
    skipped_before_ = numbers.skipped_steps;
    results.phases = timed_phases();
    return results;
}

}  // namespace hpcai::training
