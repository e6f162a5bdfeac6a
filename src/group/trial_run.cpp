// SPDX-License-Identifier: Apache-2.0
#include "trial_run.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/rounding.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/evaluation/top_k.hpp>
#include <hpcai/verification/search.hpp>

namespace hpcai::group {
namespace {

/// Time limit of an evaluation, relative to the training of as many samples.
constexpr double kEvaluationFactor = 10;

/// Estimates the steps of a group's whole search after `done` steps, which took `seconds`. The
/// estimate exceeds `done` unless all trials are done.
std::int64_t expected_steps(const config::SearchConfig& search, std::int64_t steps_per_epoch,
                            std::int64_t done, double seconds) {
    double steps = std::numeric_limits<std::int32_t>::max();
    std::int64_t least = done + 1;
    if (search.trials > 0) {
        const std::int64_t rounds =
            std::min<std::int64_t>(search.trials, std::ssize(search.epochs));
        std::int64_t epochs = (search.trials - rounds) * search.epochs.back();
        for (int trial = 0; trial < rounds; ++trial) epochs += search.epochs[trial];
        steps = std::min(steps, static_cast<double>(epochs * steps_per_epoch));
        least = std::min(least, std::max(done, epochs * steps_per_epoch));
    }
    if (search.duration_seconds > 0) {
        steps = std::min(
            steps, static_cast<double>(done) * search.duration_seconds / std::max(seconds, 1e-9));
    }
    return std::max(least, static_cast<std::int64_t>(steps));
}

training::TrainerSetup setup_of_trial(const GroupTraining& training, const config::Config& config,
                                      const TrialSetup& trial) {
    training::TrainerSetup setup =
        trainer_setup(training, config, trial.steps_per_epoch, trial.checkpoints);
    setup.faults = trial.faults;
    setup.earlier_steps = trial.earlier_steps;
    setup.earlier_epochs = trial.earlier_epochs;
    return setup;
}

constexpr std::int32_t kNoClass = -2;  // of a scored sample with a NaN output

/// Returns the predicted class of each sample; evaluation::kPaddingLabel if it is not scored.
std::vector<std::int32_t> classes_of(const training::Predictions& predictions) {
    std::vector<std::int32_t> classes;
    const std::size_t columns =
        predictions.outputs.size() / std::max<std::size_t>(predictions.labels.size(), 1);
    for (std::size_t sample = 0; sample < predictions.labels.size(); ++sample) {
        const auto row = std::span(predictions.outputs).subspan(sample * columns, columns);
        const bool is_scored = predictions.labels[sample] != evaluation::kPaddingLabel;
        classes.push_back(is_scored ? evaluation::predicted_class(row).value_or(kNoClass)
                                    : evaluation::kPaddingLabel);
    }
    return classes;
}

}  // namespace

morphs::Weights broadcast_weights(comm::Communicator& group, const graph::Graph& graph,
                                  morphs::Weights weights) {
    const auto broadcast = [&](std::vector<std::vector<float>>& values, std::size_t count) {
        values.resize(count);
        for (std::vector<float>& value : values) value = comm::broadcast(group, std::move(value));
    };
    broadcast(weights.parameters, graph.parameters().size());
    broadcast(weights.running_means, graph.statistics().size());
    broadcast(weights.running_variances, graph.statistics().size());
    return weights;
}

std::int64_t smallest_memory(const GroupTraining& training) {
    const context::RunContext& context = training.context;
    const std::string& device = context.ranks[context.place.world_rank].device_uuid;
    int sharing = 0;
    for (int rank = 0; rank < std::ssize(context.ranks); ++rank) {
        const bool is_near = context.controller.place(rank).node == context.place.node;
        if (is_near && context.ranks[rank].device_uuid == device) ++sharing;
    }
    // The rest is for libraries, messages and the system.
    constexpr double kShare = 0.9;
    const auto bytes = static_cast<double>(training.resources.device->memory_bytes() / sharing);
    double negative = -kShare * bytes;
    training.group.all_reduce_max(std::span(&negative, 1));
    return static_cast<std::int64_t>(-negative);
}

std::string failure_of_trial(const Error& error, bool is_only_rank) {
    const bool needs_memory =
        std::string_view(error.what()).find(kMemoryRemedy) != std::string::npos;
    const bool has_diverged = dynamic_cast<const training::DivergedTraining*>(&error) != nullptr;
    const bool is_known_to_all =
        is_only_rank || dynamic_cast<const comm::AgreedError*>(&error) != nullptr;
    if (!has_diverged && !(needs_memory && is_known_to_all)) throw;
    return error.what();
}

bool may_come_from_trial(const Error& error) {
    return error.code() == ExitCode::internal || error.code() == ExitCode::watchdog;
}

TrialRun::TrialRun(const GroupTraining& training, EpochSource& source, const TrialSetup& setup,
                   FinishedTrial& trial)
    : training_(training),
      source_(source),
      setup_(setup),
      trial_(trial),
      config_(verification::trial_config(training.context.config, setup.proposed)),
      trainer_(setup_of_trial(training, config_, setup_), *training.resources.device,
               training.state.model->store(), training.group) {
    training.watch.begin(setup.earlier_steps);
    training.progress.set_trial(setup.proposed.sequence);
}

/// Returns the report of a step of the trial as one of the search.
training::StepReport TrialRun::as_search_step(training::StepReport step) const {
    step.step += setup_.earlier_steps;
    step.epoch += setup_.earlier_epochs;
    step.steps = expected_steps(training_.context.config.search, setup_.steps_per_epoch, step.step,
                                training_.clock.seconds());
    step.epochs = static_cast<int>(ceil_div(step.steps, setup_.steps_per_epoch));
    return step;
}

void TrialRun::train_epoch(int epoch) {
    source_.begin(static_cast<std::uint32_t>(setup_.earlier_epochs + epoch), 0);
    const training::EpochReport report =
        trainer_.train_epoch(epoch, source_.batches(), [&](const training::StepReport& of_trial) {
            const training::StepReport step = as_search_step(of_trial);
            training_.watch.step_done(step);
            training_.progress.step(step);
        });
    epoch_seconds_.push_back(report.seconds);
    mean_loss_ = report.mean_loss;
    trial_.training_seconds += report.seconds;
    trial_.samples_trained += report.samples;
    const double share = static_cast<double>(training_.resources.samples.hold_out->samples()) /
                         static_cast<double>(std::max<std::int64_t>(report.samples, 1));
    training_.watch.pause("evaluation", training_.watch.checkpoint_timeout_seconds() +
                                            kEvaluationFactor * share * report.seconds);
    const Stopwatch watch;
    evaluate();
    trial_.evaluating_seconds += watch.seconds();
    trial_.epoch_seconds.push_back(training_.clock.seconds());
    training_.watch.resume();
}

void TrialRun::evaluate() {
    const auto& hold_out = training_.resources.samples.hold_out;
    const Evaluation evaluation = predict_in_training(training_, trainer_, hold_out);
    bad_samples_ = evaluation.bad_samples;
    trial_.samples_evaluated += hold_out->samples();
    if (training_.group.rank() != 0) return;
    const evaluation::TopK counts =
        evaluation::top_k(evaluation.predictions.outputs, evaluation.predictions.labels,
                          training_.context.config.workload.classes);
    trial_.accuracy.push_back(evaluation::accuracy(counts.correct_1, counts.samples).value_or(0));
    classes_ = classes_of(evaluation.predictions);
}

TrainingCosts TrialRun::finish(GroupRecord& record) {
    training_.watch.pause("storing", training_.watch.checkpoint_timeout_seconds());
    trainer_.average_statistics();
    trainer_.audit_final_state();
    record.epoch_seconds.insert(record.epoch_seconds.end(), epoch_seconds_.begin(),
                                epoch_seconds_.end());
    record.final_training_loss = {mean_loss_, ""};
    record.audit.passed += trainer_.audit().passed();
    record.skipped_steps += trainer_.skipped_steps();
    TrainingCosts costs;
    costs.all_reduces = trainer_.buckets().accounting();
    costs.statistics = training_.state.model->sync_batch_norm_group().accounting();
    return costs;
}

}  // namespace hpcai::group
