// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/group/autotune_log.hpp>
#include <hpcai/group/completed_group.hpp>
#include <hpcai/group/energy_monitor.hpp>
#include <hpcai/group/group_job.hpp>
#include <hpcai/group/group_outcome.hpp>
#include <hpcai/group/make_gradient_reducer.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/training/weights_file.hpp>
#include <hpcai/workloads/workload.hpp>

#include "divergence.hpp"
#include "gpu_health_monitor.hpp"
#include "group_checkpoints.hpp"
#include "group_training.hpp"
#include "group_watch.hpp"
#include "learning_curve.hpp"
#include "predict.hpp"
#include "progress_reporter.hpp"
#include "split_by_shard.hpp"
#include "step_times.hpp"

namespace hpcai::group {
namespace {

/// The ranks that train one model.
struct GroupRanks {
    comm::Communicator& group;
    std::unique_ptr<comm::Communicator>
        stage;  // those with the same shard; null: every rank trains the whole model
};

/// Connects the shards of this rank's layers.
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

/// What the end of a group's training needs.
struct GroupJob {
    const context::RunContext& context;
    const context::Resources& resources;
    Model& model;
    comm::Communicator& group;
    Logger& log;
};

void evaluate(const GroupJob& job, GroupOutcome& outcome) {
    const auto& [context, resources, model, group, log] = job;
    const Stopwatch watch;
    const AutotuneLog note(device::tuning_of(*resources.device), log);
    Evaluation validation =
        predict(context, resources, model.store(), resources.samples.validation, group);
    log_bad_samples(validation.bad_samples, "validation", log);
    std::int64_t bad = validation.bad_samples.count;
    group.all_reduce_sum(std::span(&bad, 1));
    outcome.result.bad_samples += bad;
    outcome.predictions.validation = std::move(validation.predictions);
    if (context.config.bagging.out_of_bag) {
        predict_out_of_bag(context, resources, model, group, outcome);
    }
    note.finish(device::tuning_of(*resources.device));
    outcome.result.record.evaluation_seconds = {watch.seconds(), ""};
    if (group.rank() != 0) return;
    workloads::make_evaluator(context.config, resources.samples)
        ->judge(outcome.predictions, outcome.result);
    end_learning_curve(context, outcome.result);
}

/// Writes the leader's files, each whole or not at all, the record last.
void store(const GroupJob& job, GroupOutcome& outcome, const training::StepLog& steps,
           const StepTimes& times) {
    const context::RunContext& context = job.context;
    const auto directory = results::group_directory(context.output, context.place.group);
    const std::int64_t normalized_batches =
        outcome.result.record.iterations * context.controller.layout().micro_batches;
    training::write_weights(directory / "weights.safetensors", job.model.graph(), job.model.store(),
                            normalized_batches);
    workloads::make_evaluator(context.config, job.resources.samples)
        ->store(outcome.predictions.validation, directory);
    outcome.result.record.predictions_sha256 = storage::sha256_hex_of_file(
        directory / workloads::workload_of(context.config.workload).files.member);
    store_steps(steps, directory);
    store_step_times(times, directory);
    storage::write_file_durably(directory / "record.json", records::to_json(outcome.result));
}

/// Returns whether an earlier program completed the group. Its files are then kept.
bool has_finished_before(const context::RunContext& context) {
    return context.resumes && results::read_finished_group(context.output, context.config.workload,
                                                           context.place.group);
}

void store_failure(const context::RunContext& context, const GroupResult& result,
                   const training::StepLog& steps, Logger& log) {
    try {
        const auto directory = results::group_directory(context.output, context.place.group);
        store_steps(steps, directory);
        storage::write_file_durably(directory / "record.json", records::to_json(result));
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

/// Every rank throws the same GroupStop. Announcing it would mask the message of the others.
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
    outcome.is_acting_leader = report.has_lost_leader && report.logs;
    outcome.result.record.failure = report.failure;
    const auto state = outcome.has_lost_leader ? comm::GroupState::lost : comm::GroupState::failed;
    outcome.status =
        comm::GroupStatus::of(context.place.group, state, ExitCode::watchdog, report.failure);
    if (report.logs) log.error("group {} failed: {}", context.place.group, report.failure);
}

void describe_group(const context::RunContext& context, GroupRecord& record) {
    record.group = context.place.group;
    record.ranks = context.controller.layout().degree;
    std::set<std::string> hosts;
    for (int rank = 0; rank < record.ranks; ++rank) {
        const int world_rank = context.controller.world_rank_of(record.group, rank);
        hosts.insert(context.hostnames[world_rank]);
    }
    record.hosts.assign(hosts.begin(), hosts.end());
}

}  // namespace

GroupOutcome run_group(const context::RunContext& context, const context::Resources& resources,
                       TrainingState& state, comm::Communicator& group, Logger& log) {
    GroupOutcome outcome;
    Model& model = state.model;
    const GroupJob job{context, resources, model, group, log};
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
        model.sync_batch_norm_group().connect(replicas,
                                              all_reduce_options_of(context).node_of_rank);
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
        evaluate(job, outcome);
        comm::collective_try(group, [&] {
            if (group.rank() == 0) store(job, outcome, steps, times);
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
