// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/data/sources.hpp>
#include <hpcai/group/autotune_log.hpp>
#include <hpcai/group/completed_group.hpp>
#include <hpcai/group/energy_monitor.hpp>
#include <hpcai/group/group_job.hpp>
#include <hpcai/group/group_outcome.hpp>
#include <hpcai/group/make_gradient_reducer.hpp>
#include <hpcai/group/workload.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/report/json.hpp>
#include <hpcai/results/checkpoint_folder.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/results/result_reader.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/training/trainer.hpp>
#include <hpcai/training/weights_file.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/judge.hpp>

#include "divergence.hpp"
#include "epoch_source.hpp"
#include "gpu_health_monitor.hpp"
#include "group_checkpoints.hpp"
#include "group_costs.hpp"
#include "group_watch.hpp"
#include "learning_curve.hpp"
#include "predict.hpp"
#include "progress_reporter.hpp"
#include "resumable_record.hpp"
#include "split_by_shard.hpp"
#include "step_times.hpp"

namespace hpcai::group {
namespace {

void warn_of(const data::BadSampleReport& report, const char* where, Logger& log) {
    for (const data::BadSample& sample : report.first) {
        log.warn("bad {} sample {}: {}", where, sample.name, sample.reason);
    }
}

std::int64_t bad_training_samples(comm::Communicator& group, const data::BadSampleReport& report,
                                  Logger& log) {
    warn_of(report, "training", log);
    // Ranks meet different samples in an epoch but the same ones over epochs: the largest count
    // is a lower bound that does not count a sample twice.
    return largest_of_ranks(group, report.count);
}

void report_residents(const data::ResidentPictures::Contents& held, Logger& log) {
    log.info("the GPU's memory holds {} training pictures of rank 0, {:.1f} MiB", held.pictures,
             static_cast<double>(held.bytes) / (1 << 20));
}

constexpr double kAsLongAsItTakes = -1;

/// Those that train one model.
struct GroupRanks {
    comm::Communicator& group;
    std::unique_ptr<comm::Communicator> stage;  // of a pipeline, or part; null: there is none
};

/// Lets the part that this rank computes hear of the others.
void connect_parts(const context::RunContext& context, comm::Communicator& group, Model& model) {
    if (model.exchange() == nullptr) return;
    const plan::Layout& layout = context.controller.layout();
    std::vector<int> ranks;
    for (int part = 0; part < layout.parts; ++part) {
        ranks.push_back(layout.group_rank_of(layout.stage_of(group.rank()),
                                             layout.replica_of(group.rank()), part));
    }
    model.exchange()->connect(group, std::move(ranks));
}

struct Training {
    const context::RunContext& context;
    const context::Resources& resources;
    TrainingState& state;
    comm::Communicator& group;
    comm::Communicator& replicas;  // the ranks of this one's slice
    Logger& log;
    TrainingClock& clock;
    training::StepLog& steps;
    EnergyMonitor& counters;
    GpuHealthMonitor& device_watch;
    ProgressReporter& progress;
    GroupWatch& watch;
};

/// Also of a training that failed.
void count_steps(const training::StepLog& steps, GroupRecord& record) {
    record.iterations = std::ssize(steps.steps());
    record.samples_trained = 0;
    for (const StepRecord& step : steps.steps()) record.samples_trained += step.samples;
}

std::string where_is(const context::RunContext& context) {
    const auto world_rank = static_cast<std::size_t>(context.place.world_rank);
    return fmt::format("rank {} of the group, world rank {} on {}", context.place.group_rank,
                       world_rank, context.hostnames[world_rank]);
}

/// Behind the newest checkpoint; the clock goes on at the end of the step before.
void go_on(const Training& training, training::Trainer& trainer, ResumableRecord& so_far,
           GroupCheckpoints& checkpoints) {
    const std::int64_t step = checkpoints.restore(trainer);
    so_far.add_continuation({step, training.context.program.started_utc});
    if (step > 0) training.clock.add(training.steps.steps().back().end_seconds);
}

/// All epochs; fills the record's work and times. The clock has started before anything else: the
/// last barrier of the start-up lies just behind it.
StepTimes train(const Training& training, GroupResult& result) {
    const auto& [context, resources, state, group, replicas, log, clock, steps, counters,
                 device_watch, progress, watch] = training;
    Model& model = state.model;
    comm::GradientReducer& reducer = *state.reducer;
    GroupRecord& record = result.record;
    const config::Config& config = context.config;
    record.samples_drawn = static_cast<std::int64_t>(
        make_sampler(context, resources.samples).in_bag_size(model.number()));
    const std::int64_t steps_per_epoch = record.samples_drawn / config.training.batch_size;
    require(steps_per_epoch > 0, ExitCode::data,
            "model {}: a bootstrap of {} samples does not fill one batch of training.batch_size {}",
            model.number(), record.samples_drawn, config.training.batch_size);
    const plan::Layout& layout = context.controller.layout();
    EpochSource source(context, resources, state.pictures.get(), steps_per_epoch);
    steps.reserve(steps_per_epoch * config.workload.epochs);
    ResumableRecord so_far({model, reducer, source}, record);
    GroupCheckpoints checkpoints(context, group, log, watch, so_far.content());
    const training::PipelineShare share{layout, model.networks(), group, replicas,
                                        model.exchange()};
    training::Trainer trainer(
        {config, *share.networks.front(), steps_per_epoch, reducer,
         config::has_pipeline(config.parallel) ? &share : nullptr, &steps, &model.statistics_span(),
         &checkpoints, where_is(context), training::faults_of_environment(), context.place.group},
        *resources.device, model.store(), group);
    so_far.watch(trainer);
    checkpoints.pauses_every(steps_per_epoch * config.run.evaluate_epochs);
    if (context.resumes) go_on(training, trainer, so_far, checkpoints);
    training::TrainingPosition at = trainer.position();
    progress.begin();
    watch.begin(trainer.steps_done());
    for (int epoch = at.epoch; epoch < config.workload.epochs; ++epoch) {
        const auto number = static_cast<std::uint32_t>(epoch);
        source.begin(number, std::exchange(at.steps, 0));
        const training::EpochReport report =
            trainer.train_epoch(epoch, source.batches(), [&](const training::StepReport& step) {
                watch.step_done(step);
                progress.step(step);
            });
        record.epoch_seconds.push_back(report.seconds);
        record.final_training_loss = {report.mean_loss, ""};
        record.audit.passed = trainer.audit().passed();
        record.skipped_steps = trainer.skipped_steps();
        watch.pause("evaluation", kAsLongAsItTakes);
        const Stopwatch evaluation;
        evaluate_between({context, resources, model, group, trainer, clock, steps}, epoch + 1,
                         record);
        checkpoints.pause_ended(trainer.steps_done(), evaluation.seconds());
        watch.go_on();
        if (group.rank() != 0) continue;
        log.info("epoch {}/{}: loss {:.4f}, {:.2f} s, {:.1f} images/s", epoch + 1,
                 config.workload.epochs, report.mean_loss, report.seconds,
                 static_cast<double>(report.samples) / report.seconds);
    }
    watch.end();
    const std::vector<CounterRecord> readings = counters.finish();
    device_watch.finish();
    count_steps(steps, record);
    const double seconds = steps.steps().back().end_seconds;
    progress.finish();
    if (state.pictures != nullptr && group.rank() == 0) {
        report_residents(state.pictures->contents(), log);
    }
    record.training_seconds = {seconds, ""};
    verification::derive_speed(metrics::FlopsLedger(models::make_model(config))
                                   .training_per_sample(metrics::kOfficialLedger),
                               record);
    const Quantity hidden =
        record_costs({context, group, replicas, reducer, std::ssize(trainer.buckets().ranges()),
                      static_cast<std::int64_t>(model.store().gradients().size_bytes())},
                     so_far.costs(), result);
    // Meters have seen a part only of a training that went on in another program.
    if (record.continuations.empty()) {
        result.counters = counters.gather(group, readings, record);
    }
    record.device_health = device_watch.gather(group, log);
    StepTimes times = gather_step_times(context, group, steps, hidden);
    record.time_breakdown = std::move(times.breakdown);
    result.bad_samples = bad_training_samples(group, source.bad_samples(), log);
    trainer.average_statistics();
    trainer.audit_at_the_end();
    record.audit.passed = trainer.audit().passed();
    return times;
}

void evaluate(const context::RunContext& context, const context::Resources& resources, Model& model,
              comm::Communicator& group, Logger& log, GroupOutcome& outcome) {
    const Stopwatch watch;
    const AutotuneLog note(device::tuning_of(*resources.device), log);
    Evaluation validation =
        predict(context, resources, model.store(), resources.samples.validation, group);
    warn_of(validation.bad_samples, "validation", log);
    std::int64_t bad = validation.bad_samples.count;
    group.all_reduce_sum(std::span(&bad, 1));
    outcome.result.bad_samples += bad;
    outcome.validation = std::move(validation.predictions);
    if (context.config.bagging.out_of_bag) {
        predict_out_of_bag(context, resources, model, group, outcome);
    }
    note.finish(device::tuning_of(*resources.device));
    outcome.result.record.evaluation_seconds = {watch.seconds(), ""};
    if (group.rank() != 0) return;
    make_workload(context.config, resources.samples)->judge(outcome.validation, outcome.result);
    end_learning_curve(context, outcome.result);
}

/// The leader's files, each whole or not at all; the record comes last.
void store(const context::RunContext& context, const Workload& workload, Model& model,
           GroupOutcome& outcome, const training::StepLog& steps, const StepTimes& times) {
    const auto directory = results::group_directory(context.output, context.place.group);
    const std::int64_t normalized_batches =
        outcome.result.record.iterations * context.controller.layout().micro_batches;
    training::write_weights(directory / "weights.safetensors", model.graph(), model.store(),
                            normalized_batches);
    workload.store(outcome.validation, directory);
    outcome.result.record.predictions_sha256 = storage::sha256_hex_of_file(
        directory / verification::prediction_files(context.config.workload).member);
    store_steps(steps, directory);
    store_step_times(times, directory);
    storage::write_file_durably(directory / "record.json", report::to_json(outcome.result));
}

/// Its files are not lost because it could not vote with them this time.
bool has_finished_before(const context::RunContext& context) {
    return context.resumes && results::read_finished_group(context.output, context.config.workload,
                                                           context.place.group);
}

void store_failure(const context::RunContext& context, const GroupResult& result,
                   const training::StepLog& steps, Logger& log) {
    try {
        const auto directory = results::group_directory(context.output, context.place.group);
        store_steps(steps, directory);
        storage::write_file_durably(directory / "record.json", report::to_json(result));
    } catch (const Error& error) {
        log.error("{}", error.what());
    }
}

void note_end(const context::RunContext& context, const Error& error, GroupOutcome& outcome) {
    outcome.result.record.failure = error.what();
    outcome.status = comm::GroupStatus::of(context.place.group, comm::GroupState::failed,
                                           error.code(), error.what());
}

void fail(const context::RunContext& context, const GroupRanks& ranks, const Error& error,
          GroupOutcome& outcome, Logger& log) {
    if (ranks.group.rank() == 0 && error.code() != ExitCode::watchdog) {
        log.error("group {} failed: {}", context.place.group, error.what());
    }
    ranks.group.announce_failure(error);  // the others of the group may wait for this rank
    if (ranks.stage != nullptr) ranks.stage->announce_failure(error);  // those of its stage, too
    note_end(context, error, outcome);
}

/// Of which the others have thrown the same: a word of this one would hide what theirs says.
void stop(const context::RunContext& context, const GroupStop& how, GroupOutcome& outcome,
          Logger& log) {
    if (context.place.group_rank == 0) log.info("group {} {}", context.place.group, how.what());
    outcome.end = how.state();
    outcome.stop_seconds = how.seconds();
    note_end(context, how, outcome);
}

void explain(const context::RunContext& context, const WatchReport& report, GroupOutcome& outcome,
             Logger& log) {
    outcome.has_lost_leader = report.has_lost_leader;
    outcome.is_acting_leader = report.has_lost_leader && report.speaks;
    outcome.result.record.failure = report.failure;
    const auto state = outcome.has_lost_leader ? comm::GroupState::lost : comm::GroupState::failed;
    outcome.status =
        comm::GroupStatus::of(context.place.group, state, ExitCode::watchdog, report.failure);
    if (report.speaks) log.error("group {} failed: {}", context.place.group, report.failure);
}

void describe_group(const context::RunContext& context, GroupRecord& record) {
    record.group = context.place.group;
    record.ranks = context.controller.layout().degree;
    std::set<std::string> hosts;
    for (int rank = 0; rank < record.ranks; ++rank) {
        const int world_rank = context.controller.world_rank_of(record.group, rank);
        hosts.insert(context.hostnames[static_cast<std::size_t>(world_rank)]);
    }
    record.hosts.assign(hosts.begin(), hosts.end());
}

}  // namespace

GroupOutcome run_group(const context::RunContext& context, const context::Resources& resources,
                       TrainingState& state, comm::Communicator& group, Logger& log) {
    GroupOutcome outcome;
    Model& model = state.model;
    const int number = context.place.group;
    GroupRecord& record = outcome.result.record;
    TrainingClock clock;
    describe_group(context, record);
    EnergyMonitor counters(context, resources.counters);
    GpuHealthMonitor device_watch(context);
    training::FlightRecorder flight([&clock] { return clock.seconds(); });
    training::StepLog steps = make_step_log(context.config.run, *resources.device, clock, flight);
    ProgressReporter progress(context);
    GroupRanks ranks{group, nullptr};
    std::optional<GroupWatch> watch;
    bool has_begun = false;
    try {
        watch.emplace(context, group, flight);
        if (context.resumes) {
            if (auto finished = load_completed_group(context, resources, state, group, log)) {
                finished->end = ProgressState::finished;
                progress.end("", finished->end, false);
                return std::move(*finished);
            }
        }
        ranks.stage = split_by_shard(context, resources, group);
        connect_parts(context, group, model);
        comm::Communicator& replicas = ranks.stage == nullptr ? group : *ranks.stage;
        watch->watch(replicas);
        state.reducer = make_gradient_reducer(context, resources, replicas, log);
        model.statistics_span().connect(replicas, sum_options_of(context).node_of_rank);
        if (number == 0 && group.rank() == 0) {
            for (const std::string& note : resources.samples.notes) log.info("{}", note);
        }
        has_begun = true;
        const StepTimes times = train({context, resources, state, group, replicas, log, clock,
                                       steps, counters, device_watch, progress, *watch},
                                      outcome.result);
        state.drop_training();
        model.collect(group);
        outcome.result.training_digest = training::training_digest(model.graph(), model.store());
        evaluate(context, resources, model, group, log, outcome);
        comm::run_together(group, [&] {
            if (group.rank() == 0)
                store(context, *make_workload(context.config, resources.samples), model, outcome,
                      steps, times);
        });
        if (group.rank() == 0) results::remove_group_checkpoints(context.output, number);
        outcome.end = ProgressState::finished;
        outcome.status = comm::GroupStatus::of(number, comm::GroupState::completed);
    } catch (const training::ReplicaDivergence& error) {
        record.audit = failed_audit(context, error.divergence());
        const std::string why = describe_divergence(record.audit, error.divergence().ranks);
        fail(context, ranks, Error(error.code(), why), outcome, log);
    } catch (const GroupStop& how) {
        stop(context, how, outcome, log);
    } catch (const Error& error) {
        fail(context, ranks, error, outcome, log);
        if (error.code() == ExitCode::watchdog) {
            explain(context, watch ? watch->report(error.what()) : WatchReport{error.what()},
                    outcome, log);
        }
    } catch (const std::exception& error) {
        fail(context, ranks, Error(ExitCode::internal, error.what()), outcome, log);
    }
    if (!record.training_seconds.value) record.training_seconds = {clock.seconds(), ""};
    progress.end(record.failure, outcome.end, outcome.is_acting_leader);
    if (record.failure.empty()) return outcome;
    count_steps(steps, record);
    if (record.device_health.empty())
        record.device_health = device_watch.mine();  // others' are lost
    const bool stores = group.rank() == 0 || outcome.is_acting_leader;
    if (stores && (has_begun || !has_finished_before(context))) {
        store_failure(context, outcome.result, steps, log);
    }
    return outcome;
}

}  // namespace hpcai::group
