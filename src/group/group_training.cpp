// SPDX-License-Identifier: Apache-2.0
#include "group_training.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/training/trainer.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/workloads/workload.hpp>

#include "epoch_source.hpp"
#include "group_checkpoints.hpp"
#include "predict.hpp"
#include "resumable_record.hpp"

namespace hpcai::group {
namespace {

constexpr double kHealthTimeoutSeconds = 60;

struct Session {
    const GroupTraining& training;
    training::Trainer& trainer;
    EpochSource& source;
    GroupCheckpoints& checkpoints;
};

/// Evaluates the model if run.evaluate_epochs asks for it after this epoch, and adds its quality to
/// the leader's `record`. Skips the last epoch, after which the run evaluates anyway. Stops the
/// clock and does not change the training. Collective in the group; all ranks throw if one fails.
void evaluate_between_epochs(const Session& session, int epochs_done, GroupRecord& record) {
    const GroupTraining& training = session.training;
    const context::RunContext& context = training.context;
    const context::Resources& resources = training.resources;
    comm::Communicator& group = training.group;
    const int interval = context.config.run.evaluate_epochs;
    const bool is_last = epochs_done == context.config.workload.epochs;
    if (interval == 0 || epochs_done % interval != 0 || is_last) return;
    training.clock.stop();
    Evaluation evaluation =
        predict_in_training(training, session.trainer, resources.samples.validation);
    if (group.rank() == 0) {
        GroupResult scored;
        workloads::make_evaluator(context.config, resources.samples)
            ->score({.validation = std::move(evaluation.predictions)}, scored);
        if (scored.quality.value) {
            record.quality_by_epoch.push_back(
                {epochs_done, training.steps.steps().back().end_seconds, *scored.quality.value});
        }
    }
    group.barrier();  // otherwise the clocks of other ranks would include the leader's work
    training.clock.resume();
}

void train_epoch(const Session& session, int epoch, std::int64_t first_batch, GroupRecord& record) {
    const GroupTraining& training = session.training;
    training::Trainer& trainer = session.trainer;
    session.source.begin(static_cast<std::uint32_t>(epoch), first_batch);
    const training::EpochReport report =
        trainer.train_epoch(epoch, session.source.batches(), [&](const training::StepReport& step) {
            training.watch.step_done(step);
            training.progress.step(step);
        });
    record.epoch_seconds.push_back(report.seconds);
    record.final_training_loss = {report.mean_loss, ""};
    record.audit.passed = trainer.audit().passed();
    record.skipped_steps = trainer.skipped_steps();
    training.watch.pause("evaluation", kNoTimeLimit);
    const Stopwatch evaluation;
    evaluate_between_epochs(session, epoch + 1, record);
    session.checkpoints.phase_ended(trainer.steps_done(), evaluation.seconds());
    training.watch.resume();
    if (training.group.rank() != 0) return;
    training.log.info("epoch {}/{}: loss {:.4f}, {:.2f} s, {:.1f} images/s", epoch + 1,
                      training.context.config.workload.epochs, report.mean_loss, report.seconds,
                      static_cast<double>(report.samples) / report.seconds);
}

void train_epochs(const Session& session, GroupRecord& record) {
    const GroupTraining& training = session.training;
    training::TrainingPosition position = session.trainer.position();
    training.progress.begin();
    training.watch.begin(session.trainer.steps_done());
    for (int epoch = position.epoch; epoch < training.context.config.workload.epochs; ++epoch) {
        train_epoch(session, epoch, std::exchange(position.steps, 0), record);
    }
    training.watch.end();
}

/// Adds meters and GPU health of all ranks to the leader's `result`. Collective in the group.
void gather_readings(const GroupTraining& training, GroupResult mine, GroupResult& result) {
    comm::Communicator& group = training.group;
    // If training was resumed, the meters of this launch have not read all of it.
    const bool is_complete = result.record.continuations.empty();
    if (!is_complete) mine.counters.clear();
    if (is_complete && group.rank() == 0) {
        result.counters = training.energy_monitor.step_and_clock_counters(result.record);
    }
    const std::string text = mine == GroupResult{} ? "" : records::to_json(mine);
    for (const std::string& stored : comm::gather_strings(group, text)) {
        if (stored.empty()) continue;
        const auto rank = records::from_json<GroupResult>(stored, "record.json");
        std::ranges::copy(rank.counters, std::back_inserter(result.counters));
        std::ranges::copy(rank.record.device_health,
                          std::back_inserter(result.record.device_health));
    }
    const std::string& xids_failure = training.gpu_health_monitor.xids_failure();
    if (xids_failure.empty() || group.rank() != 0) return;
    training.log.info("the driver reports no Xids of rank {}: {}",
                      training.context.place.world_rank, xids_failure);
}

/// Returns the totals of a group that trains one model, without an architecture search.
TrainingTotals totals_of(const Session& session, const ResumableRecord& resumable) {
    const GroupTraining& training = session.training;
    std::int64_t samples = 0;
    for (const StepRecord& step : training.steps.steps()) samples += step.samples;
    const metrics::FlopsLedger ledger(models::make_model(training.context.config));
    return {.costs = resumable.costs(),
            .buckets = std::ssize(session.trainer.buckets().ranges()),
            .gradient_bytes =
                static_cast<std::int64_t>(training.state.model->store().gradients().size_bytes()),
            .flops = static_cast<double>(samples) *
                     static_cast<double>(ledger.training_per_sample(metrics::kOfficialLedger)),
            .bad_samples = session.source.bad_samples()};
}

}  // namespace

Evaluation predict_in_training(const GroupTraining& training, training::Trainer& trainer,
                               std::shared_ptr<const data::SampleSet> samples) {
    Model& model = *training.state.model;
    graph::ParameterStore& store = model.store();
    const std::vector<float> statistics = store.read(store.statistics());
    trainer.average_statistics();
    const auto whole_model = model.gather_parameters(training.group);
    Evaluation evaluation = predict(training.context, training.resources,
                                    {whole_model ? *whole_model : store, model.edits()},
                                    std::move(samples), training.group);
    store.write(statistics, store.statistics());
    return evaluation;
}

StepTimes gather_measurements(const GroupTraining& training, const TrainingTotals& totals,
                              GroupResult& result) {
    const auto& [context, resources, state, group, replicas, log, clock, steps, energy_monitor,
                 gpu_health_monitor, progress, watch] = training;
    GroupRecord& record = result.record;
    GroupResult readings;
    readings.counters = energy_monitor.finish();
    readings.record.device_health = gpu_health_monitor.finish(kHealthTimeoutSeconds);
    count_steps(steps, record);
    record.training_seconds = {steps.steps().back().end_seconds, ""};
    progress.finish();
    if (state.device_pictures != nullptr && group.rank() == 0) {
        log.info("{}", state.device_pictures->summary());
    }
    verification::derive_speed(totals.flops, record);
    const Quantity overlapped_seconds = record_costs(
        {context, group, replicas, *state.reducer, totals.buckets, totals.gradient_bytes},
        totals.costs, result);
    gather_readings(training, std::move(readings), result);
    StepTimes times = gather_step_times(context, group, steps, overlapped_seconds);
    record.time_breakdown = std::move(times.breakdown);
    log_bad_samples(totals.bad_samples, "training", log);
    // Several ranks may read the same bad sample in different epochs, so a sum over the ranks would
    // count that sample twice. The largest count is a lower bound.
    result.bad_samples = max_over_ranks(group, totals.bad_samples.count);
    return times;
}

training::TrainerSetup trainer_setup(const GroupTraining& training, const config::Config& config,
                                     std::int64_t steps_per_epoch,
                                     training::StepCallback& callback) {
    const context::RunContext& context = training.context;
    Model& model = *training.state.model;
    return {.config = config,
            .network = *model.networks().front(),
            .steps_per_epoch = steps_per_epoch,
            .reducer = *training.state.reducer,
            .log = &training.steps,
            .sync_batch_norm = &model.sync_batch_norm_group(),
            .step_callback = &callback,
            .rank_name =
                fmt::format("rank {} of the group, world rank {} on {}", context.place.group_rank,
                            context.place.world_rank, context.host()),
            .faults = training::faults_of_environment(),
            .group = context.place.group};
}

StepTimes train(const GroupTraining& training, GroupResult& result) {
    const context::RunContext& context = training.context;
    const config::Config& config = context.config;
    Model& model = *training.state.model;
    GroupRecord& record = result.record;
    record.samples_drawn = static_cast<std::int64_t>(
        make_sampler(context, training.resources.samples).in_bag_size(model.number()));
    const std::int64_t steps_per_epoch = record.samples_drawn / config.training.batch_size;
    require(steps_per_epoch > 0, ExitCode::data,
            "model {}: a bootstrap of {} samples does not fill one batch of training.batch_size {}",
            model.number(), record.samples_drawn, config.training.batch_size);
    EpochSource source(context, training.resources, training.state.device_pictures.get(),
                       steps_per_epoch);
    training.steps.reserve(steps_per_epoch * config.workload.epochs);
    ResumableRecord resumable(source, record);
    GroupCheckpoints checkpoints(context, training.group, training.log, training.watch,
                                 resumable.content());
    const training::PipelineShare share{context.controller.layout(), model.networks(),
                                        training.group, training.replicas, model.exchange()};
    training::TrainerSetup setup = trainer_setup(training, config, steps_per_epoch, checkpoints);
    if (config::has_pipeline(config.parallel)) setup.pipeline = &share;
    training::Trainer trainer(setup, *training.resources.device, model.store(), training.group);
    resumable.watch({model, *training.state.reducer, trainer, checkpoints});
    checkpoints.set_epochs(steps_per_epoch, config.run.evaluate_epochs);
    const Session session{training, trainer, source, checkpoints};
    if (context.is_resumed) {
        const std::int64_t step = checkpoints.restore(trainer);
        record.continuations.push_back({step, context.launch.started_utc});
        // The clock continues from the end of the checkpoint's last step.
        if (step > 0) training.clock.add(training.steps.steps().back().end_seconds);
    }
    train_epochs(session, record);
    StepTimes times = gather_measurements(training, totals_of(session, resumable), result);
    trainer.average_statistics();
    trainer.audit_final_state();
    record.audit.passed = trainer.audit().passed();
    checkpoints.finish();
    return times;
}

void count_steps(const training::StepLog& steps, GroupRecord& record) {
    record.iterations = std::ssize(steps.steps());
    record.samples_trained = 0;
    for (const StepRecord& step : steps.steps()) record.samples_trained += step.samples;
}

void log_bad_samples(const data::BadSampleReport& report, const char* split, Logger& log) {
    for (const data::BadSample& sample : report.first) {
        log.warn("bad {} sample {}: {}", split, sample.name, sample.reason);
    }
}

}  // namespace hpcai::group
