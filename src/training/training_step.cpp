// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/training/training_step.hpp>

namespace hpcai::training {
namespace {

// PyTorch's GradScaler starts here.
constexpr float kFirstDynamicScale = 65536;
constexpr float kLargestDynamicScale = 16777216;

// A first step may allocate inside the libraries, and a second shows whether it runs again.
constexpr std::int64_t kStepsBeforeRecording = 2;

std::vector<comm::Range> ranges_and_status(const graph::ParameterStore& store) {
    std::vector<comm::Range> ranges = store.ranges();
    ranges.push_back(store.status_range());
    return ranges;
}

comm::BucketOptions bucket_options(const config::CommunicationConfig& communication) {
    return {static_cast<std::size_t>(communication.bucket_mib * 1024 * 1024),
            communication.overlap};
}

/// Scales are of row losses, of which the whole batch of the model is summed: so the share of a row
/// in the mean belongs to them, and gradients need no later division where the loss is not scaled.
device::LossScalePolicy plan_loss_scale(const config::TrainingConfig& training,
                                        tensor::DType compute) {
    device::LossScalePolicy policy;
    policy.loss_weight = 1.0f / static_cast<float>(training.batch_size);
    policy.dynamic = training.loss_scale == 0 && compute == tensor::DType::f16;
    policy.smallest = policy.loss_weight / 2;  // reached by an overflow of the unscaled loss only
    policy.largest = kLargestDynamicScale * policy.loss_weight;
    return policy;
}

float first_loss_scale(const config::TrainingConfig& training, bool is_dynamic) {
    if (is_dynamic) return kFirstDynamicScale;
    return training.loss_scale == 0 ? 1.0f : static_cast<float>(training.loss_scale);
}

/// Hands finished gradients to the buckets while the backward pass goes on.
class BucketObserver final : public graph::Observer {
public:
    explicit BucketObserver(comm::GradientBuckets& buckets) : buckets_(buckets) {}
    void after(const graph::Step& step) override {
        for (const graph::ParameterId parameter : step.final_gradients) {
            buckets_.ready(static_cast<std::size_t>(parameter));
        }
        buckets_.progress();
    }

private:
    comm::GradientBuckets& buckets_;
};

bool is_classifier(const graph::Graph& graph) {
    return std::holds_alternative<ops::SoftmaxCrossEntropy>(graph.nodes().back().operation);
}

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
               bucket_options(setup.config.communication)),
      can_be_recorded_(device_.records() && (reducer_.size() == 1 || reducer_.can_be_recorded())),
      steps_between_readings_(setup.config.run.loss_steps) {
    if (steps_between_readings_ == 0) steps_between_readings_ = can_be_recorded_ ? 20 : 1;
    const float scale = first_loss_scale(setup.config.training, loss_scale_.dynamic);
    network_.set_loss_scale(scale * loss_scale_.loss_weight);
    set(&device::StepNumbers::gradient_factor, 1 / scale);
    // A number that is not finite in one logit of a classifier shows in its last bias's gradient, a
    // sum over all samples of all ranks; an overflow of fp16 may be anywhere, as may what is wrong
    // in one of a detector's losses. The status is infinite where a rank has failed, so that no
    // rank takes such a step.
    checked_ = store_.gradients_and_status();
    if (network_.compute() != tensor::DType::f16 && is_classifier(network_.graph())) {
        checked_ = checked_.subspan(store_.ranges().back().begin);
    }
}

void TrainingStep::run(double learning_rate, bool has_failed) {
    set(&device::StepNumbers::learning_rate, static_cast<float>(learning_rate));
    store_.enqueue_status(has_failed ? std::numeric_limits<float>::infinity() : 0.0f);
    refresh_copies();
    if (recording_ != nullptr) {
        recording_->run();
        buckets_.repeat_step();
    } else if (can_be_recorded_ && steps_ == kStepsBeforeRecording) {
        reducer_.check();  // making a recording may wait for the device
        recording_ = device_.record([this] { enqueue(); });
        recording_->run();
    } else {
        enqueue();
    }
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
    BucketObserver observer(buckets_);
    device::StepNumbers* numbers = network_.step_numbers();
    buckets_.ready(store_.ranges().size());
    network_.prepare_rest(nobody);
    network_.forward(nobody);
    for (const std::span<const float> losses : network_.losses()) {
        device_.add_losses(losses, numbers);
    }
    network_.backward(observer);
    buckets_.finish();
    device_.check_finite(checked_, numbers);
    update_->run();
    device_.finish_step(loss_scale_, numbers);
}

StepResults TrainingStep::read() {
    reducer_.check();
    buckets_.read_times();
    const device::StepNumbers numbers = network_.read_step_numbers();
    set(&device::StepNumbers::loss_sum, 0.0);
    StepResults results;
    results.loss_sum = numbers.loss_sum;
    results.skipped_steps = numbers.skipped_steps;
    results.has_failed = std::isinf(store_.status());
    results.loss_scale = numbers.loss_scale / loss_scale_.loss_weight;
    results.has_diverged = numbers.skipped_steps > skipped_before_ &&
                           (!loss_scale_.dynamic || numbers.loss_scale <= loss_scale_.smallest);
    skipped_before_ = numbers.skipped_steps;
    return results;
}

template <typename T>
void TrainingStep::set(T device::StepNumbers::*number, T value) {
    device_.enqueue_upload(&(network_.step_numbers()->*number),
                           std::as_bytes(std::span(&value, 1)));
}

}  // namespace hpcai::training
