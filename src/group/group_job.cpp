// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/group/autotune_log.hpp>
#include <hpcai/group/energy_monitor.hpp>
#include <hpcai/group/group_job.hpp>
#include <hpcai/group/make_gradient_reducer.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/csv.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/record.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/training/weights_file.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/workloads/workload.hpp>

#include "divergence.hpp"
#include "gpu_health_monitor.hpp"
#include "group_checkpoints.hpp"
#include "group_training.hpp"
#include "group_watch.hpp"
#include "predict.hpp"
#include "progress_reporter.hpp"
#include "resumable_record.hpp"
#include "search_job.hpp"
#include "step_times.hpp"

namespace hpcai::group {
namespace {

constexpr double kHealthTimeoutAfterFailureSeconds = 5;

struct GroupRanks {
    comm::Communicator& group;
    // The ranks with the same stage and shard; null if every rank trains the whole model.
    std::unique_ptr<comm::Communicator> shard;

    /// The ranks that train the same parameters.
    comm::Communicator& replicas() const { return shard == nullptr ? group : *shard; }
};

/// Returns a hash of small activations as this rank's device stores them. A device may store few
/// and many channels differently, so the hash covers both.
std::uint64_t hash_of_activation_layout(const context::Resources& resources) {
    device::Device& device = *resources.device;
    std::uint64_t fingerprint = 0;
    for (const std::int64_t channels : {3, 4, 64}) {
        const tensor::Shape shape{1, 2, 2, channels};
        const std::size_t bytes = device.storage_bytes(shape, resources.precision.compute);
        const auto memory = device.allocate(bytes);
        std::vector<float> ramp(static_cast<std::size_t>(shape.elements()));
        std::iota(ramp.begin(), ramp.end(), 1.0f);
        device.store_channels_last(memory->data(), shape, resources.precision.compute, ramp);
        fingerprint = 31 * fingerprint + device.hash({static_cast<const float*>(memory->data()),
                                                      bytes / sizeof(float)});
    }
    return fingerprint;
}

/// Returns the communicator of the ranks with this rank's stage and shard of the model; null if
/// every rank trains the whole model. Throws Error(launch) if activation layouts differ in the
/// group, because ranks exchange activations without conversion. Collective in the group.
std::unique_ptr<comm::Communicator> split_by_shard(const context::RunContext& context,
                                                   const context::Resources& resources,
                                                   comm::Communicator& group) {
    const plan::Layout& layout = context.controller.layout();
    if (layout.partitions() == 1) return nullptr;
    const auto all = comm::all_gather(group, hash_of_activation_layout(resources));
    require(
        std::ranges::count(all, all.front()) == group.size(), ExitCode::launch,
        "parallel.mode {} needs the same activation layout on all ranks, but the ranks of group "
        "{} have different layouts; try device.layout: channels_last",
        config::value_text(context.config, "parallel.mode"), context.place.group);
    return group.split(layout.partition_of(group.rank()), group.rank());
}

struct GroupJob {
    const context::RunContext& context;
    const context::Resources& resources;
    Model& model;
    comm::Communicator& group;
    Logger& log;
};

/// Connects this rank to its replicas and to the other shards of its stage. Adds the replicas to
/// `watch`.
void connect(const GroupJob& job, GroupWatch& watch, TrainingState& state, GroupRanks& ranks) {
    ranks.shard = split_by_shard(job.context, job.resources, job.group);
    watch.watch(ranks.replicas());
    if (job.model.exchange() != nullptr) {
        const plan::Layout& layout = job.context.controller.layout();
        const int rank = job.group.rank();
        std::vector<int> shards;  // group ranks of the shards of this rank's replica and stage
        for (int shard = 0; shard < layout.shards; ++shard) {
            shards.push_back(
                layout.group_rank_of(layout.stage_of(rank), layout.replica_of(rank), shard));
        }
        job.model.exchange()->connect(job.group, std::move(shards));
    }
    state.reducer = make_gradient_reducer(job.context, job.resources, ranks.replicas(), job.log);
    job.model.sync_batch_norm_group().connect(ranks.replicas(),
                                              all_reduce_options_of(job.context).node_of_rank);
}

void log_notes(const GroupJob& job) {
    if (job.context.place.group != 0 || job.group.rank() != 0) return;
    for (const std::string& note : job.resources.samples.notes) job.log.info("{}", note);
}

void evaluate(const GroupJob& job, const training::StepLog& steps, GroupOutcome& outcome) {
    const auto& [context, resources, model, group, log] = job;
    const Stopwatch watch;
    const AutotuneLog autotune_log(resources.device->tuning(), log);
    Evaluation validation = predict(context, resources, {model.store(), model.edits()},
                                    resources.samples.validation, group);
    log_bad_samples(validation.bad_samples, "validation", log);
    std::int64_t bad = validation.bad_samples.count;
    group.all_reduce_sum(std::span(&bad, 1));
    outcome.result.bad_samples += bad;
    outcome.predictions.validation = std::move(validation.predictions);
    // Reads the warnings now, because predicting out-of-bag samples decodes more training images.
    const std::int64_t warned_in_training =
        max_over_ranks(group, resources.samples.training->decoder_warnings().count);
    if (context.config.bagging.out_of_bag) {
        predict_out_of_bag(context, resources, model, group, outcome);
    }
    autotune_log.finish(resources.device->tuning());
    std::int64_t warned = resources.samples.validation->decoder_warnings().count;
    group.all_reduce_sum(std::span(&warned, 1));
    outcome.result.decoder_warnings = warned + warned_in_training;
    outcome.result.record.evaluation_seconds = {watch.seconds(), ""};
    if (group.rank() != 0) return;
    workloads::make_evaluator(context.config, resources.samples)
        ->score(outcome.predictions, outcome.result);
    verification::derive_learning_curve(context.config, steps.steps(), outcome.result);
}

/// Keeps the checkpoints of run.keep_checkpoints. If one is missing because its write failed, the
/// trained group does not fail.
void keep_checkpoints(const GroupJob& job, std::int64_t steps_per_epoch) {
    for (const std::int64_t step : config::kept_steps(job.context.config, steps_per_epoch)) {
        try {
            results::keep_checkpoint(job.context.output, job.context.place.group, step);
        } catch (const std::exception& error) {
            job.log.warn("the checkpoint of step {} is not kept: {}", step, error.what());
        }
    }
}

/// Writes the leader's files, each atomically and the record last. Then removes the checkpoints
/// that run.keep_checkpoints does not keep.
void store(const GroupJob& job, GroupOutcome& outcome, const training::StepLog& steps,
           const StepTimes& times) {
    const context::RunContext& context = job.context;
    const auto directory = results::group_directory(context.output, context.place.group);
    training::write_weights(directory / "weights.safetensors", job.model.graph(), job.model.store(),
                            verification::normalized_batches(
                                context.config, context.controller.layout(), outcome.result));
    workloads::make_evaluator(context.config, job.resources.samples)
        ->store(outcome.predictions.validation, directory);
    outcome.result.record.predictions_sha256 = storage::sha256_hex_of_file(
        directory / workloads::workload_of(context.config.workload).files.member);
    storage::write_file_durably(directory / "steps.csv", report::steps_to_csv(steps.steps()));
    storage::write_file_durably(directory / "ranks.csv", report::ranks_to_csv(times.ranks));
    if (!times.trace.empty()) storage::write_file_durably(directory / "trace.json", times.trace);
    keep_checkpoints(job, outcome.result.record.iterations / context.config.workload.epochs);
    storage::write_file_durably(directory / "record.json", records::to_json(outcome.result));
    results::remove_group_checkpoints(context.output, context.place.group);
}

StepTimes train_or_search(const GroupTraining& training, GroupResult& result) {
    const bool is_search = config::is_search(training.context.config.workload);
    return is_search ? run_search(training, result) : train(training, result);
}

/// Returns whether an earlier launch completed the group, whose files must then be kept.
bool is_already_complete(const context::RunContext& context) {
    return context.is_resumed &&
           results::read_finished_group(context.output, context.config, context.place.group);
}

void store_failure(const context::RunContext& context, const GroupResult& result,
                   const training::StepLog& steps, Logger& log) {
    try {
        const auto directory = results::group_directory(context.output, context.place.group);
        storage::write_file_durably(directory / "steps.csv", report::steps_to_csv(steps.steps()));
        storage::write_file_durably(directory / "record.json", records::to_json(result));
    } catch (const Error& error) {
        log.error("{}", error.what());
    }
}

void record_end(const context::RunContext& context, const Error& error, GroupOutcome& outcome) {
    outcome.result.record.failure = error.what();
    outcome.status = comm::GroupStatus::of(context.place.group, comm::GroupState::failed,
                                           error.code(), error.what());
}

void fail(const context::RunContext& context, const GroupRanks& ranks, const Error& error,
          GroupOutcome& outcome, Logger& log) {
    if (ranks.group.rank() == 0 && error.code() != ExitCode::watchdog) {
        log.error("group {} failed: {}", context.place.group, error.what());
    }
    ranks.group.announce_failure(error);  // other ranks may wait for this rank
    if (ranks.shard != nullptr) ranks.shard->announce_failure(error);
    record_end(context, error, outcome);
}

/// Does not announce the stop, because every rank throws the same GroupStop.
void record_stop(const context::RunContext& context, const GroupStop& stop, GroupOutcome& outcome,
                 Logger& log) {
    if (context.place.group_rank == 0) log.info("group {} {}", context.place.group, stop.what());
    outcome.end = stop.state();
    outcome.stop_seconds = stop.seconds();
    record_end(context, stop, outcome);
}

void record_hang(const context::RunContext& context, const WatchReport& report,
                 GroupOutcome& outcome, Logger& log) {
    outcome.has_lost_leader = report.has_lost_leader;
    outcome.is_acting_leader = report.has_lost_leader && report.is_reporter;
    outcome.result.record.failure = report.failure;
    const auto state = outcome.has_lost_leader ? comm::GroupState::lost : comm::GroupState::failed;
    outcome.status =
        comm::GroupStatus::of(context.place.group, state, ExitCode::watchdog, report.failure);
    if (report.is_reporter) log.error("group {} failed: {}", context.place.group, report.failure);
}

class GroupLog final : public Logger {
public:
    GroupLog(std::unique_ptr<Logger> console, std::unique_ptr<Logger> file)
        : console_(std::move(console)), file_(std::move(file)) {}

    void write(Severity severity, std::string_view message) override {
        if (file_ != nullptr) file_->write(severity, message);
        if (severity != Severity::info) console_->write(severity, message);
    }

private:
    std::unique_ptr<Logger> console_;
    std::unique_ptr<Logger> file_;  // null: not a leader
};

}  // namespace

std::unique_ptr<Logger> open_group_log(const context::RunContext& context) {
    const std::string label =
        fmt::format("group {} rank {}", context.place.group, context.place.group_rank);
    std::unique_ptr<Logger> file;
    if (context.place.group_rank == 0) {
        file = make_logger(
            label,
            (results::group_directory(context.output, context.place.group) / "log.txt").string());
    }
    return std::make_unique<GroupLog>(make_logger(label, ""), std::move(file));
}

GroupOutcome run_group(const context::RunContext& context, const context::Resources& resources,
                       TrainingState& state, comm::Communicator& group, Logger& log) {
    GroupOutcome outcome;
    Model& model = *state.model;
    const GroupJob job{context, resources, model, group, log};
    const int number = context.place.group;
    GroupRecord& record = outcome.result.record;
    TrainingClock clock;
    verification::describe_group(context.controller, results::describe_topology(context), number,
                                 record);
    EnergyMonitor energy_monitor(context, resources.counters);
    GpuHealthMonitor gpu_health_monitor(context);
    training::FlightRecorder flight([&clock] { return clock.seconds(); });
    training::StepLog steps = make_step_log(context.config.run, *resources.device, clock, flight);
    ProgressReporter progress(context, resources.samples.validation->samples());
    GroupRanks ranks{group, nullptr};
    std::optional<GroupWatch> watch;
    bool has_begun = false;
    try {
        watch.emplace(context, group, flight);
        if (context.is_resumed) {
            if (auto finished = load_completed_group(context, resources, state, group, log)) {
                progress.end("", finished->end, false);
                return std::move(*finished);
            }
        }
        connect(job, *watch, state, ranks);
        log_notes(job);
        has_begun = true;
        const GroupTraining training{.context = context,
                                     .resources = resources,
                                     .state = state,
                                     .group = group,
                                     .replicas = ranks.replicas(),
                                     .log = log,
                                     .clock = clock,
                                     .steps = steps,
                                     .energy_monitor = energy_monitor,
                                     .gpu_health_monitor = gpu_health_monitor,
                                     .progress = progress,
                                     .watch = *watch};
        const StepTimes times = train_or_search(training, outcome.result);
        state.free_training_memory();
        model.collect(group);
        outcome.result.training_digest = training::training_digest(model.graph(), model.store());
        evaluate(job, steps, outcome);
        comm::collective_try(group, [&] {
            if (group.rank() == 0) store(job, outcome, steps, times);
        });
        outcome.end = ProgressState::finished;
        outcome.status = comm::GroupStatus::of(number, comm::GroupState::completed);
    } catch (const training::ReplicaDivergence& error) {
        record.audit = failed_audit(context, error.divergence());
        const std::string why = describe_divergence(record.audit, error.divergence().ranks);
        fail(context, ranks, Error(error.code(), why), outcome, log);
    } catch (const GroupStop& stop) {
        record_stop(context, stop, outcome, log);
    } catch (const Error& error) {
        fail(context, ranks, error, outcome, log);
        if (error.code() == ExitCode::watchdog) {
            record_hang(context, watch ? watch->report(error.what()) : WatchReport{error.what()},
                        outcome, log);
        }
    } catch (const std::exception& error) {
        fail(context, ranks, to_error(error), outcome, log);
    }
    if (!record.training_seconds.value) record.training_seconds = {clock.seconds(), ""};
    progress.end(record.failure, outcome.end, outcome.is_acting_leader);
    if (record.failure.empty()) return outcome;
    count_steps(steps, record);
    if (record.device_health.empty()) {  // the readings of other ranks are lost
        record.device_health = gpu_health_monitor.finish(kHealthTimeoutAfterFailureSeconds);
    }
    const bool stores = group.rank() == 0 || outcome.is_acting_leader;
    if (stores && (has_begun || !is_already_complete(context))) {
        store_failure(context, outcome.result, steps, log);
    }
    return outcome;
}

}  // namespace hpcai::group
