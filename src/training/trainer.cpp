// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <exception>
#include <numeric>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/training/trainer.hpp>

namespace hpcai::training {
namespace {

std::vector<comm::Range> ranges_and_status(const graph::ParameterStore& store) {
    std::vector<comm::Range> ranges = store.ranges();
    ranges.push_back(store.status_range());
    return ranges;
}

comm::BucketOptions bucket_options(const config::CommunicationConfig& communication) {
    return {static_cast<std::size_t>(communication.bucket_mib * 1024 * 1024),
            communication.overlap};
}

constexpr const char* kRemedy =
    "try a lower training.learning_rate or a longer training.warmup_epochs";

bool all_finite(std::span<const float> values) {
    return std::all_of(values.begin(), values.end(),
                       [](float value) { return std::isfinite(value); });
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

}  // namespace

Optimizer::Optimizer(const graph::Graph& graph, const graph::ParameterStore& store,
                     const config::TrainingConfig& training)
    : settings_{0, static_cast<float>(training.momentum), static_cast<float>(training.weight_decay),
                training.nesterov} {
    for (std::size_t index = 0; index < graph.parameters().size(); ++index) {
        const graph::ParameterKind kind = graph.parameters()[index].kind;
        const bool decays = training.weight_decay_on_norm_and_bias ||
                            kind == graph::ParameterKind::filters ||
                            kind == graph::ParameterKind::linear_weight;
        const graph::Range range = store.range(static_cast<graph::ParameterId>(index));
        if (!parts_.empty() && parts_.back().decays == decays) {
            parts_.back().elements.end = range.end;  // the gap between is zero and stays so
        } else {
            parts_.push_back({range, decays});
        }
    }
}

void Optimizer::step(double learning_rate, device::Device& device,
                     graph::ParameterStore& store) const {
    device::SgdStep step = settings_;
    step.learning_rate = static_cast<float>(learning_rate);
    for (const Part& part : parts_) {
        step.weight_decay = part.decays ? settings_.weight_decay : 0;
        const std::size_t size = part.elements.end - part.elements.begin;
        device.sgd(step, store.parameters().subspan(part.elements.begin, size),
                   store.gradients().subspan(part.elements.begin, size),
                   store.momentum().subspan(part.elements.begin, size));
    }
}

Trainer::Trainer(const TrainerSetup& setup, device::Device& device, graph::ParameterStore& store,
                 comm::Communicator& group)
    : config_(setup.config),
      device_(device),
      store_(store),
      group_(group),
      steps_per_epoch_(setup.steps_per_epoch),
      network_(setup.network),
      optimizer_(setup.network.graph(), store, setup.config.training),
      schedule_(make_schedule(setup.config.training, setup.config.workload.epochs,
                              setup.steps_per_epoch)),
      buckets_(group, store.gradients_and_status(), ranges_and_status(store),
               bucket_options(setup.config.communication)),
      audit_(setup.config.run.audit_steps, device, store, group),
      losses_(static_cast<std::size_t>(setup.config.training.batch_size / group.size())) {
    // Row losses are summed over the whole batch of the model, so gradients need no later division.
    network_.set_loss_scale(1.0f / static_cast<float>(setup.config.training.batch_size));
}

EpochReport Trainer::train_epoch(int epoch, data::BatchSource& source,
                                 const std::function<void(const StepReport&)>& listener) {
    const Stopwatch watch;
    EpochReport report;
    double loss_sum = 0;
    for (std::int64_t batch_index = 0; batch_index < source.batches(); ++batch_index) {
        const data::Batch* batch = nullptr;
        std::exception_ptr failure;
        try {
            batch = &source.next();
        } catch (...) {
            failure = std::current_exception();
        }
        // A rank without a batch still takes part in the sums, or the others would wait for ever.
        store_.set_status(failure ? 1.0f : 0.0f);
        buckets_.ready(store_.ranges().size());
        if (batch != nullptr) {
            compute_gradients(*batch);
        } else {
            for (std::size_t i = 0; i < store_.ranges().size(); ++i) buckets_.ready(i);
        }
        buckets_.finish();
        // A count of ranks: less is a wrong bit, and must not part this rank from the others.
        if (failure || store_.status() >= 0.5F) {
            comm::run_together(group_, [&] {
                if (failure) std::rethrow_exception(failure);
            });
        }
        check_gradients(steps_done_);
        optimizer_.step(schedule_(steps_done_), device_, store_);
        const double loss = mean_loss(*batch);
        loss_sum += loss;
        report.samples += config_.training.batch_size;
        ++report.steps;
        ++steps_done_;
        listener({steps_done_, steps_per_epoch_ * config_.workload.epochs, epoch, loss,
                  config_.training.batch_size});
        audit_.after_step(steps_done_);
    }
    device_.synchronize();
    report.seconds = watch.seconds();
    check_parameters(epoch);
    group_.all_reduce_sum(std::span(&loss_sum, 1));
    report.mean_loss = loss_sum / static_cast<double>(std::max<std::int64_t>(report.steps, 1)) /
                       static_cast<double>(group_.size());
    return report;
}

void Trainer::compute_gradients(const data::Batch& batch) {
    graph::Observer nobody;
    BucketObserver observer(buckets_);
    network_.set_input("images", std::as_bytes(batch.images.as<std::uint8_t>()));
    network_.set_input("labels", std::as_bytes(batch.labels.as<std::int32_t>()));
    network_.prepare(nobody);
    network_.forward(nobody);
    network_.backward(observer);
}

double Trainer::mean_loss(const data::Batch& batch) {
    network_.read_losses(losses_);
    const double sum = std::accumulate(losses_.begin(), losses_.end(), 0.0);
    return sum / static_cast<double>(std::max<std::int64_t>(batch.samples, 1));
}

/// How many hold parameters that are not finite. Where all do, numbers are the cause, and the bits
/// of NaNs may differ between ranks that hold the same.
std::int64_t Trainer::ranks_that_lost_parameters() {
    std::int64_t ranks = all_finite(store_.read(store_.parameters())) ? 0 : 1;
    group_.all_reduce_sum(std::span(&ranks, 1));
    return ranks;
}

/// The last bias's gradient is a sum over all logits' gradients of all ranks: a number that is not
/// finite in one logit shows there, on all ranks at the same step.
void Trainer::check_gradients(std::int64_t step) {
    const auto last = static_cast<graph::ParameterId>(store_.ranges().size() - 1);
    if (all_finite(store_.read(store_.gradient(last)))) return;
    // A wrong bit of one rank, not the settings, may be the cause.
    if (ranks_that_lost_parameters() < group_.size()) audit_.now(step);
    throw Error(
        ExitCode::internal,
        fmt::format("training diverged: the gradient of step {} is not finite; {}", step, kRemedy));
}

/// What the last backward pass lost, no loss has seen.
void Trainer::check_parameters(int epoch) {
    const std::int64_t lost = ranks_that_lost_parameters();
    if (lost == 0) return;
    if (lost < group_.size()) audit_.now(steps_done_);
    const std::vector<graph::Parameter>& parameters = network_.graph().parameters();
    for (std::size_t index = 0; index < parameters.size(); ++index) {
        const auto id = static_cast<graph::ParameterId>(index);
        require(all_finite(store_.read(store_.parameter(id))), ExitCode::internal,
                "training diverged: {} is not finite after epoch {}; {}", parameters[index].name,
                epoch + 1, kRemedy);
    }
}

void Trainer::average_statistics() {
    std::vector<float> statistics = store_.read(store_.statistics());
    group_.all_reduce_sum(statistics);
    const float share = 1.0f / static_cast<float>(group_.size());
    for (float& value : statistics) value *= share;
    store_.write(statistics, store_.statistics());
}

}  // namespace hpcai::training
