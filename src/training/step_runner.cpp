// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <hpcai/training/predict.hpp>
#include <hpcai/training/step_runner.hpp>

namespace hpcai::training {
namespace {

constexpr float kFirstDynamicScale = 65536;   // as PyTorch's GradScaler
constexpr float kMaxDynamicScale = 16777216;  // 2^24, as in NVIDIA's Apex

constexpr const char* kScalarsName = "step_scalars";

std::vector<comm::Range> ranges_and_status(const graph::ParameterStore& store) {
    std::vector<comm::Range> ranges = store.ranges();
    ranges.push_back(store.status_range());
    return ranges;
}

/// The gradients of the samples' losses are multiplied by the loss scale. All scales of the policy
/// include the factor 1 / batch size, so gradients are means over the batch.
device::LossScalePolicy loss_scale_policy(const config::TrainingConfig& training,
                                          tensor::DType compute) {
    device::LossScalePolicy policy;
    policy.loss_weight = 1.0f / static_cast<float>(training.batch_size);
    policy.dynamic = training.loss_scale == 0 && compute == tensor::DType::f16;
    policy.min_scale = policy.loss_weight / 2;  // only reached if gradients overflow with scale 1
    policy.max_scale = kMaxDynamicScale * policy.loss_weight;
    return policy;
}

/// Returns the gradients that must be finite, and the failure status, which follows them. The
/// status is infinite if a rank has failed, so that all ranks skip the step. After a softmax loss,
/// the gradient of the last bias is enough: it is a sum over all samples, so any non-finite logit
/// makes it non-finite. In fp16 and in a detector, any gradient may be non-finite. A stage without
/// a loss checks only the status, except in fp16.
std::span<const float> checked_gradients(const graph::Network& network,
                                         graph::ParameterStore& store) {
    const std::span<const float> all = store.gradients_and_status();
    const graph::Graph& graph = network.graph();
    if (network.compute() == tensor::DType::f16) return all;
    if (outputs_softmax(graph.nodes().back().operation)) {
        return all.subspan(store.ranges().back().begin);
    }
    return graph.outputs().empty() ? all : all.last(1);
}

/// Calls `visit` with the gradients of each bucket and the name under which a snapshot stores their
/// residual: the rounding error that error feedback adds in the next all-reduce.
template <typename Visit>
void for_each_residual(comm::GradientReducer& reducer, const comm::GradientBuckets& buckets,
                       graph::ParameterStore& store, const Visit& visit) {
    if (reducer.size() == 1) return;
    std::size_t bucket = 0;
    for (const comm::Range& range : buckets.ranges()) {
        visit(store.gradients_and_status().subspan(range.begin, range.count()),
              fmt::format("residual.{}", bucket++));
    }
}

device::StepScalars read_scalars(const Snapshot& from) {
    const std::span<const double> stored = from.numbers(kScalarsName, 7);
    const auto counter = [&](double value) {
        return static_cast<std::uint32_t>(
            from.integer(kScalarsName, value, 0, std::numeric_limits<std::uint32_t>::max()));
    };
    device::StepScalars scalars;
    scalars.learning_rate = static_cast<float>(stored[0]);
    scalars.loss_scale = static_cast<float>(stored[1]);
    scalars.gradient_factor = static_cast<float>(stored[2]);
    if (!(scalars.loss_scale > 0) || !(scalars.gradient_factor > 0)) {
        from.fail(kScalarsName, "expected a loss scale and a gradient factor above 0");
    }
    scalars.good_steps = counter(stored[3]);
    scalars.skipped_steps = counter(stored[4]);
    scalars.taken_steps = counter(stored[5]);
    scalars.loss_sum = stored[6];
    return scalars;
}

// A CUDA graph capture forbids allocations, which libraries may make in the first steps.
constexpr std::int64_t kStepsBeforeRecording = 2;

device::OptimizerRule rule_of(const config::TrainingConfig& training) {
    const auto momentum = static_cast<float>(training.momentum);
    const auto epsilon = [&training](double usual) { return training.epsilon.value_or(usual); };
    switch (training.optimizer) {
        case config::Optimizer::sgd:
            break;
        case config::Optimizer::lars:
            return device::Lars{
                momentum, training.nesterov, training.momentum_correction.value_or(false),
                static_cast<float>(training.trust_coefficient), static_cast<float>(epsilon(0))};
        case config::Optimizer::lamb:
            return device::Lamb{training.beta1, training.beta2, epsilon(1e-6)};
        case config::Optimizer::adam:
        case config::Optimizer::adamw:
            return device::Adam{training.beta1, training.beta2, epsilon(1e-8),
                                training.optimizer == config::Optimizer::adamw};
        case config::Optimizer::adagrad:
            return device::AdaGrad{static_cast<float>(epsilon(1e-10))};
    }
    return device::Sgd{momentum, training.nesterov, training.momentum_correction.value_or(true)};
}

}  // namespace

StepRunner::StepRunner(const StepSetup& setup)
    : device_(setup.device),
      network_(setup.network),
      store_(setup.store),
      reducer_(setup.reducer),
      log_(setup.log),
      loss_scale_(loss_scale_policy(setup.config.training, network_.compute())),
      checked_gradients_(checked_gradients(network_, store_)),
      update_(device_.build(plan_optimizer(network_, store_, setup.config.training),
                            optimizer_tensors(network_, store_))),
      buckets_(reducer_, store_.gradients_and_status(), ranges_and_status(store_),
               {static_cast<std::size_t>(setup.config.communication.bucket_mib * 1024 * 1024),
                setup.config.communication.overlap},
               setup.before_all_reduce),
      steps_between_reads_(setup.config.run.loss_steps) {
    const float scale = loss_scale_.dynamic
                            ? kFirstDynamicScale
                            : static_cast<float>(std::max(1, setup.config.training.loss_scale));
    network_.reset_step_scalars(scale * loss_scale_.loss_weight);
    set_scalar(&device::StepScalars::gradient_factor, 1 / scale);
    if (log_ == nullptr) return;
    buckets_.set_listener([this, ranges = buckets_.ranges()](std::size_t bucket, bool is_complete) {
        log_->log_all_reduce(bucket, ranges[bucket].count() * sizeof(float), is_complete);
    });
}

void StepRunner::begin_step(double learning_rate, bool has_failed) {
    set_scalar(&device::StepScalars::learning_rate, static_cast<float>(learning_rate));
    store_.enqueue_status(has_failed ? std::numeric_limits<float>::infinity() : 0.0f);
    // An update writes the working copies, too; only ParameterStore::write() makes them outdated.
    if (copied_writes_ == store_.parameter_writes()) return;
    graph::Observer no_observer;
    network_.prepare_optimizer_copies(no_observer);
    copied_writes_ = store_.parameter_writes();
}

void StepRunner::notify_buckets(const graph::KernelCall& call) {
    for (const graph::ParameterId parameter : call.final_gradients) {
        buckets_.ready(static_cast<std::size_t>(parameter));
    }
    buckets_.progress();
}

StepResults StepRunner::read() {
    reducer_.check();
    buckets_.read_times();
    const device::StepScalars scalars = network_.read_step_scalars();
    set_scalar(&device::StepScalars::loss_sum, 0.0);
    StepResults results;
    results.loss_sum = scalars.loss_sum;
    results.samples = std::exchange(samples_since_read_, 0);
    results.skipped_steps = scalars.skipped_steps;
    results.has_failed = std::isinf(store_.status());
    results.loss_scale = scalars.loss_scale / loss_scale_.loss_weight;
    results.has_diverged =
        scalars.skipped_steps > std::exchange(skipped_before_, scalars.skipped_steps) &&
        (!loss_scale_.dynamic || scalars.loss_scale <= loss_scale_.min_scale);
    return results;
}

double StepRunner::communication_seconds() const {
    return buckets_.accounting().exposed_seconds + buckets_.accounting().interleaved_seconds;
}

void StepRunner::save(Snapshot& to) {
    const device::StepScalars scalars = network_.read_step_scalars();
    to.put_numbers(kScalarsName, {scalars.learning_rate, scalars.loss_scale,
                                  scalars.gradient_factor, static_cast<double>(scalars.good_steps),
                                  static_cast<double>(scalars.skipped_steps),
                                  static_cast<double>(scalars.taken_steps), scalars.loss_sum});
    for_each_residual(reducer_, buckets_, store_,
                      [&](std::span<float> values, const std::string& name) {
                          std::vector<float> residual = reducer_.residual_of(values);
                          if (!residual.empty()) to.put(name, std::move(residual));
                      });
}

void StepRunner::restore(const Snapshot& from) {
    const device::StepScalars scalars = read_scalars(from);
    device_.upload(network_.step_scalars(), std::as_bytes(std::span(&scalars, 1)));
    skipped_before_ = scalars.skipped_steps;
    for_each_residual(reducer_, buckets_, store_,
                      [&](std::span<float> values, const std::string& name) {
                          const std::size_t size = reducer_.residual_of(values).size();
                          if (size > 0) reducer_.set_residual(values, from.floats(name, size));
                      });
}

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
        buckets_.count_replayed_step();
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

device::Optimizer plan_optimizer(const graph::Network& network, const graph::ParameterStore& store,
                                 const config::TrainingConfig& training) {
    device::Optimizer optimizer{
        rule_of(training),
        static_cast<float>(training.weight_decay),
        {},
        network.compute(),
        training.precision == config::Precision::fp16 && network.compute() == tensor::DType::f16};
    const bool has_trust_ratios = training.optimizer == config::Optimizer::lars ||
                                  training.optimizer == config::Optimizer::lamb;
    std::vector<device::Optimizer::Range>& ranges = optimizer.ranges;
    const auto& parameters = network.graph().parameters();
    optimizer.exchange = network.exchange();
    bool is_adjacent = false;  // to the previous range
    for (std::size_t index = 0; index < parameters.size(); ++index) {
        const graph::ParameterKind kind = parameters[index].kind;
        if (!parameters[index].is_trained) {
            is_adjacent = false;
            continue;
        }
        const bool is_weight =
            kind == graph::ParameterKind::filters || kind == graph::ParameterKind::linear_weight;
        const auto parameter = static_cast<graph::ParameterId>(index);
        const auto [begin, end] = store.range(parameter);
        const device::Optimizer::Range range{
            begin, end, training.weight_decay_on_norm_and_bias || is_weight,
            has_trust_ratios && is_weight, network.working_copy(parameter)};
        const bool merges = is_adjacent && ranges.back().decays == range.decays &&
                            !ranges.back().has_trust_ratio && !range.has_trust_ratio &&
                            ranges.back().working_copy == nullptr && range.working_copy == nullptr;
        if (merges) {
            ranges.back().end = end;  // the padding in between stays zero
        } else {
            ranges.push_back(range);
        }
        is_adjacent = true;
    }
    return optimizer;
}

device::OptimizerTensors optimizer_tensors(graph::Network& network, graph::ParameterStore& store) {
    device::OptimizerTensors tensors{
        store.parameters(), store.gradients(), {}, network.step_scalars()};
    for (int state = 0; state < store.states(); ++state) {
        tensors.states.at(static_cast<std::size_t>(state)) = store.state(state);
    }
    return tensors;
}

}  // namespace hpcai::training
