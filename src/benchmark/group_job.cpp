// SPDX-License-Identifier: Apache-2.0
#include "group_job.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/data/sources.hpp>
#include <hpcai/report/json.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/training/trainer.hpp>
#include <hpcai/training/weights_file.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/judge.hpp>

#include "checkpoint_folder.hpp"
#include "connect_gradients.hpp"
#include "core_counters.hpp"
#include "device_watch.hpp"
#include "divergence.hpp"
#include "epoch_source.hpp"
#include "group_checkpoints.hpp"
#include "group_costs.hpp"
#include "group_outcome.hpp"
#include "group_watch.hpp"
#include "learning_curve.hpp"
#include "progress_reporter.hpp"
#include "result_layout.hpp"
#include "result_reader.hpp"
#include "split_stages.hpp"
#include "step_times.hpp"
#include "stored_group.hpp"
#include "training_so_far.hpp"
#include "tuning_note.hpp"
#include "workload.hpp"

namespace hpcai::benchmark {
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
void connect_parts(const Start& start, comm::Communicator& group, BaseModel& model) {
    if (model.exchange() == nullptr) return;
    const plan::Layout& layout = start.controller.layout();
    std::vector<int> ranks;
    for (int part = 0; part < layout.parts; ++part) {
        ranks.push_back(layout.group_rank_of(layout.stage_of(group.rank()),
                                             layout.replica_of(group.rank()), part));
    }
    model.exchange()->connect(group, std::move(ranks));
}

struct Training {
    const Start& start;
    BaseModel& model;
    comm::Communicator& group;
    comm::Communicator& replicas;  // the ranks of this one's slice
    comm::GradientReducer& reducer;
    Logger& log;
    TrainingClock& clock;
    training::StepLog& steps;
    CoreCounters& counters;
    DeviceWatch& device_watch;
    ProgressReporter& progress;
    GroupWatch& watch;
};

/// Also of a training that failed.
void count_steps(const training::StepLog& steps, GroupRecord& record) {
    record.iterations = std::ssize(steps.steps());
    record.samples_trained = 0;
    for (const StepRecord& step : steps.steps()) record.samples_trained += step.samples;
}

std::string where_is(const Start& start) {
    const auto world_rank = static_cast<std::size_t>(start.place.world_rank);
    return fmt::format("rank {} of the group, world rank {} on {}", start.place.group_rank,
                       world_rank, start.hostnames[world_rank]);
}

/// Behind the newest checkpoint; the clock goes on at the end of the step before.
void go_on(const Training& training, training::Trainer& trainer, TrainingSoFar& so_far,
           GroupCheckpoints& checkpoints) {
    const std::int64_t step = checkpoints.restore(trainer);
    so_far.add_continuation({step, training.start.program_started_utc});
    if (step > 0) training.clock.add(training.steps.steps().back().end_seconds);
}

/// All epochs; fills the record's work and times. The clock has started before anything else: the
/// last barrier of the start-up lies just behind it.
StepTimes train(const Training& training, GroupResult& result) {
    const auto& [start, model, group, replicas, reducer, log, clock, steps, counters, device_watch,
                 progress, watch] = training;
    GroupRecord& record = result.record;
    const config::Config& config = start.config;
    record.samples_drawn = static_cast<std::int64_t>(model.sampler().in_bag_size(model.number()));
    const std::int64_t steps_per_epoch = record.samples_drawn / config.training.batch_size;
    require(steps_per_epoch > 0, ExitCode::data,
            "model {}: a bootstrap of {} samples does not fill one batch of training.batch_size {}",
            model.number(), record.samples_drawn, config.training.batch_size);
    const plan::Layout& layout = start.controller.layout();
    EpochSource source(start, model, steps_per_epoch);
    steps.reserve(steps_per_epoch * config.workload.epochs);
    TrainingSoFar so_far({model, reducer, source}, record);
    GroupCheckpoints checkpoints(start, group, log, watch, so_far.content());
    const training::PipelineShare share{layout, model.networks(), group, replicas,
                                        model.exchange()};
    training::Trainer trainer(
        {config, *share.networks.front(), steps_per_epoch, reducer,
         config::has_pipeline(config.parallel) ? &share : nullptr, &steps, &model.statistics_span(),
         &checkpoints, where_is(start), training::faults_of_environment(), start.place.group},
        *start.device, model.store(), group);
    so_far.watch(trainer);
    checkpoints.pauses_every(steps_per_epoch * config.run.evaluate_epochs);
    if (start.resumes) go_on(training, trainer, so_far, checkpoints);
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
        evaluate_between({start, model, group, trainer, clock, steps}, epoch + 1, record);
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
    if (model.pictures() != nullptr && group.rank() == 0)
        report_residents(model.pictures()->contents(), log);
    record.training_seconds = {seconds, ""};
    verification::derive_speed(model.training_flops_per_sample(), record);
    const Quantity hidden =
        record_costs({start, group, replicas, reducer, std::ssize(trainer.buckets().ranges()),
                      static_cast<std::int64_t>(model.store().gradients().size_bytes())},
                     so_far.costs(), result);
    // Meters have seen a part only of a training that went on in another program.
    if (record.continuations.empty()) {
        result.counters = counters.gather(group, readings, record);
    }
    record.device_health = device_watch.gather(group, log);
    StepTimes times = gather_step_times(start, group, steps, hidden);
    record.time_breakdown = std::move(times.breakdown);
    result.bad_samples = bad_training_samples(group, source.bad_samples(), log);
    trainer.average_statistics();
    trainer.audit_at_the_end();
    record.audit.passed = trainer.audit().passed();
    return times;
}

void evaluate(const Start& start, BaseModel& model, comm::Communicator& group, Logger& log,
              GroupOutcome& outcome) {
    const Stopwatch watch;
    const TuningNote note(device::tuning_of(*start.device), log);
    BaseModel::Evaluation validation = model.predict(start.samples.validation, group);
    warn_of(validation.bad_samples, "validation", log);
    std::int64_t bad = validation.bad_samples.count;
    group.all_reduce_sum(std::span(&bad, 1));
    outcome.result.bad_samples += bad;
    outcome.validation = std::move(validation.predictions);
    if (start.config.bagging.out_of_bag) predict_out_of_bag(start, model, group, outcome);
    note.finish(device::tuning_of(*start.device));
    outcome.result.record.evaluation_seconds = {watch.seconds(), ""};
    if (group.rank() != 0) return;
    make_workload(start)->judge(outcome.validation, outcome.result);
    end_learning_curve(start, outcome.result);
}

/// The leader's files, each whole or not at all; the record comes last.
void store(const Start& start, BaseModel& model, GroupOutcome& outcome,
           const training::StepLog& steps, const StepTimes& times) {
    const auto directory = group_directory(start.output, start.place.group);
    const std::int64_t normalized_batches =
        outcome.result.record.iterations * start.controller.layout().micro_batches;
    training::write_weights(directory / "weights.safetensors", model.graph(), model.store(),
                            normalized_batches);
    make_workload(start)->store(outcome.validation, directory);
    outcome.result.record.predictions_sha256 = storage::sha256_hex_of_file(
        directory / verification::prediction_files(start.config.workload).member);
    store_steps(steps, directory);
    store_step_times(times, directory);
    storage::write_file_durably(directory / "record.json", report::to_json(outcome.result));
}

/// Its files are not lost because it could not vote with them this time.
bool has_finished_before(const Start& start) {
    return start.resumes &&
           read_finished_group(start.output, start.config.workload, start.place.group);
}

void store_failure(const Start& start, const GroupResult& result, const training::StepLog& steps,
                   Logger& log) {
    try {
        const auto directory = group_directory(start.output, start.place.group);
        store_steps(steps, directory);
        storage::write_file_durably(directory / "record.json", report::to_json(result));
    } catch (const Error& error) {
        log.error("{}", error.what());
    }
}

void note_end(const Start& start, const Error& error, GroupOutcome& outcome) {
    outcome.result.record.failure = error.what();
    outcome.status = comm::GroupStatus::of(start.place.group, comm::GroupState::failed,
                                           error.code(), error.what());
}

void fail(const Start& start, const GroupRanks& ranks, const Error& error, GroupOutcome& outcome,
          Logger& log) {
    if (ranks.group.rank() == 0 && error.code() != ExitCode::watchdog) {
        log.error("group {} failed: {}", start.place.group, error.what());
    }
    ranks.group.announce_failure(error);  // the others of the group may wait for this rank
    if (ranks.stage != nullptr) ranks.stage->announce_failure(error);  // those of its stage, too
    note_end(start, error, outcome);
}

/// Of which the others have thrown the same: a word of this one would hide what theirs says.
void stop(const Start& start, const GroupStop& how, GroupOutcome& outcome, Logger& log) {
    if (start.place.group_rank == 0) log.info("group {} {}", start.place.group, how.what());
    outcome.end = how.state();
    outcome.stop_seconds = how.seconds();
    note_end(start, how, outcome);
}

void explain(const Start& start, const WatchReport& report, GroupOutcome& outcome, Logger& log) {
    outcome.has_lost_leader = report.has_lost_leader;
    outcome.speaks_for_leader = report.has_lost_leader && report.speaks;
    outcome.result.record.failure = report.failure;
    const auto state = outcome.has_lost_leader ? comm::GroupState::lost : comm::GroupState::failed;
    outcome.status =
        comm::GroupStatus::of(start.place.group, state, ExitCode::watchdog, report.failure);
    if (report.speaks) log.error("group {} failed: {}", start.place.group, report.failure);
}

void describe_group(const Start& start, GroupRecord& record) {
    record.group = start.place.group;
    record.ranks = start.controller.layout().degree;
    std::set<std::string> hosts;
    for (int rank = 0; rank < record.ranks; ++rank) {
        const int world_rank = start.controller.world_rank_of(record.group, rank);
        hosts.insert(start.hostnames[static_cast<std::size_t>(world_rank)]);
    }
    record.hosts.assign(hosts.begin(), hosts.end());
}

}  // namespace

GroupOutcome run_group(const Start& start, BaseModel& model, comm::Communicator& group,
                       std::unique_ptr<comm::GradientReducer>& reducer, Logger& log) {
    GroupOutcome outcome;
    const int number = start.place.group;
    GroupRecord& record = outcome.result.record;
    TrainingClock clock;
    describe_group(start, record);
    CoreCounters counters(start);
    DeviceWatch device_watch(start);
    training::FlightRecorder flight([&clock] { return clock.seconds(); });
    training::StepLog steps = make_step_log(start, clock, flight);
    ProgressReporter progress(start);
    GroupRanks ranks{group, nullptr};
    std::optional<GroupWatch> watch;
    bool has_begun = false;
    try {
        watch.emplace(start, group, flight);
        if (start.resumes) {
            if (auto finished = take_finished_group(start, model, group, log)) {
                finished->end = ProgressState::finished;
                progress.end("", finished->end, false);
                return std::move(*finished);
            }
        }
        ranks.stage = split_stages(start, group);
        connect_parts(start, group, model);
        comm::Communicator& replicas = ranks.stage == nullptr ? group : *ranks.stage;
        watch->watch(replicas);
        reducer = connect_gradients(start, replicas, log);
        model.statistics_span().connect(replicas, sum_options_of(start).node_of_rank);
        if (number == 0 && group.rank() == 0) {
            for (const std::string& note : start.samples.notes) log.info("{}", note);
        }
        has_begun = true;
        const StepTimes times = train({start, model, group, replicas, *reducer, log, clock, steps,
                                       counters, device_watch, progress, *watch},
                                      outcome.result);
        model.drop_training();
        model.collect(group);
        outcome.result.training_digest = training::training_digest(model.graph(), model.store());
        evaluate(start, model, group, log, outcome);
        comm::run_together(group, [&] {
            if (group.rank() == 0) store(start, model, outcome, steps, times);
        });
        if (group.rank() == 0) remove_group_checkpoints(start.output, number);
        outcome.end = ProgressState::finished;
        outcome.status = comm::GroupStatus::of(number, comm::GroupState::completed);
    } catch (const training::ReplicaDivergence& error) {
        record.audit = failed_audit(start, error.divergence());
        const std::string why = describe_divergence(record.audit, error.divergence().ranks);
        fail(start, ranks, Error(error.code(), why), outcome, log);
    } catch (const GroupStop& how) {
        stop(start, how, outcome, log);
    } catch (const Error& error) {
        fail(start, ranks, error, outcome, log);
        if (error.code() == ExitCode::watchdog) {
            explain(start, watch ? watch->report(error.what()) : WatchReport{error.what()}, outcome,
                    log);
        }
    } catch (const std::exception& error) {
        fail(start, ranks, Error(ExitCode::internal, error.what()), outcome, log);
    }
    if (!record.training_seconds.value) record.training_seconds = {clock.seconds(), ""};
    progress.end(record.failure, outcome.end, outcome.speaks_for_leader);
    if (record.failure.empty()) return outcome;
    count_steps(steps, record);
    if (record.device_health.empty())
        record.device_health = device_watch.mine();  // others' are lost
    const bool stores = group.rank() == 0 || outcome.speaks_for_leader;
    if (stores && (has_begun || !has_finished_before(start))) {
        store_failure(start, outcome.result, steps, log);
    }
    return outcome;
}

}  // namespace hpcai::benchmark
