// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include <hpcai/training/predict.hpp>
#include <hpcai/training/training_step.hpp>

namespace hpcai::training {
namespace {

// Libraries may allocate memory in step 0. Step 1 proves that a step works without that.
constexpr std::int64_t kStepsBeforeRecording = 2;

}  // namespace

TrainingStep::TrainingStep(const StepSetup& setup)
    : StepRunner(setup),
      can_be_recorded_(setup.config.device.recording && device_.can_record() &&
                       !setup.before_all_reduce &&
                       (reducer_.size() == 1 || reducer_.can_be_recorded())) {
    if (steps_between_reads_ == 0) steps_between_reads_ = can_be_recorded_ ? 20 : 1;
}

void TrainingStep::run_batch(const data::Batch* batch, double learning_rate, bool has_failed) {
    enter(log_, Phase::forward);
    if (batch != nullptr) {
        feed(network_, *batch);
        samples_since_read_ += batch->samples;
    } else {
        feed_padding(network_);
    }
    run(learning_rate, has_failed);
}

void TrainingStep::run(double learning_rate, bool has_failed) {
    begin_step(learning_rate, has_failed);
    if (recording_ != nullptr) {
        recording_->run();
        has_run_recording_ = true;
        buckets_.count_repeated_step();
    } else if (can_be_recorded_ && steps_ == kStepsBeforeRecording) {
        reducer_.check();  // throws if a rank is lost: a capture would wait for it forever
        if (log_ != nullptr && log_->measures_phases()) timeline_ = device_.make_timeline();
        recording_ = device_.record([this] { enqueue(); });
        recording_->run();
        has_run_recording_ = true;
    } else {
        enqueue();
    }
    enter(log_, Phase::other);
    reducer_.end_step();
    ++steps_;
}

void TrainingStep::enqueue() {
    KernelObserver observe(log_, [](const graph::KernelCall&) {});
    KernelObserver reduce_gradients(
        log_, [this](const graph::KernelCall& call) { notify_buckets(call); });
    device::StepScalars* scalars = network_.step_scalars();
    notify_status();
    mark();
    network_.prepare_other_copies(observe);  // working copies that the last update did not write
    network_.forward(observe);
    for (const std::span<const float> losses : network_.losses()) {
        device_.add_losses(losses, scalars);
    }
    mark();
    enter(log_, Phase::backward);
    network_.backward(reduce_gradients);
    mark();
    enter(log_, Phase::communication);
    buckets_.finish();
    mark();
    enter(log_, Phase::optimizer);
    device_.check_finite(checked_gradients_, scalars);
    update_->run();
    device_.finish_step(loss_scale_, scalars);
    mark();
}

StepResults TrainingStep::read() {
    StepResults results = StepRunner::read();
    if (timeline_ == nullptr || !std::exchange(has_run_recording_, false)) return results;
    const std::vector<double> seconds = timeline_->seconds();
    PhaseSeconds& phases = results.phases.emplace();
    phases.forward = seconds.at(0);
    phases.backward = seconds.at(1);
    phases.communication = seconds.at(2);
    phases.optimizer = seconds.at(3);
    return results;
}

}  // namespace hpcai::training
