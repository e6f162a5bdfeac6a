// SPDX-License-Identifier: Apache-2.0
#include "group_job.hpp"

#include <array>
#include <set>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/comm/sum_traffic.hpp>
#include <hpcai/data/sources.hpp>
#include <hpcai/data/subset.hpp>
#include <hpcai/report/json.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/training/trainer.hpp>
#include <hpcai/training/weights_file.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/judge.hpp>

#include "connect_gradients.hpp"
#include "core_counters.hpp"
#include "divergence.hpp"
#include "epoch_source.hpp"
#include "learning_curve.hpp"
#include "progress_reporter.hpp"
#include "split_stages.hpp"
#include "step_times.hpp"
#include "tuning_note.hpp"
#include "workload.hpp"

namespace hpcai::benchmark {
namespace {

Quantity mean_over_ranks(comm::Communicator& group, double value) {
    group.all_reduce_sum(std::span(&value, 1));
    return {value / static_cast<double>(group.size()), ""};
}

/// None where one rank has none: slices of a model may sum in different ways.
Quantity mean_over_ranks(comm::Communicator& group, const Quantity& mine) {
    std::array<double, 2> sums{mine.value.value_or(0), mine.value ? 0.0 : 1.0};
    group.all_reduce_sum(sums);
    if (sums[1] == 0) return {sums[0] / static_cast<double>(group.size()), ""};
    return {std::nullopt, mine.value ? "no number of another slice" : mine.reason};
}

std::int64_t largest_of_ranks(comm::Communicator& group, std::int64_t value) {
    auto largest = static_cast<double>(value);
    group.all_reduce_max(std::span(&largest, 1));
    return static_cast<std::int64_t>(largest);
}

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

/// Of this rank's sums, which a device may have made by itself.
Quantity exposed_seconds(const comm::BucketAccounting& sums,
                         const comm::StatisticsAccounting& statistics, bool is_device_sum) {
    if (!is_device_sum) {
        return {sums.exposed_seconds + sums.interleaved_seconds + statistics.seconds, ""};
    }
    if (!sums.timed) return {std::nullopt, "no step was repeated by a recording"};
    return {sums.timed->exposed, ""};
}

Quantity bandwidth_of(const comm::BucketAccounting& sums) {
    if (!sums.timed) return {std::nullopt, "no device has timed the sums by themselves"};
    const double bytes = static_cast<double>(sums.bytes_reduced) *
                         static_cast<double>(sums.timed_steps) / static_cast<double>(sums.steps);
    return {bytes / sums.timed->under_way, ""};
}

/// After the last step. All steps send the same bytes.
void record_traffic(const Start& start, comm::Communicator& group,
                    const comm::GradientReducer& reducer,
                    const comm::StatisticsAccounting& statistics, GroupResult& result) {
    const auto gradients = reducer.sent();
    const bool are_counted = largest_of_ranks(group, gradients ? 0 : 1) == 0;
    comm::SentBytes sent = gradients.value_or(comm::SentBytes{});
    sent.all += statistics.sent.all;
    sent.to_other_nodes += statistics.sent.to_other_nodes;
    const comm::SumTraffic bytes = comm::gather_traffic(group, start.place.node, sent);
    if (reducer.size() > 1) result.sum_backend = reducer.backend();
    const auto per_step = [&](std::int64_t comm::SumTraffic::*of) -> Quantity {
        if (!are_counted) return {std::nullopt, "NCCL chooses the messages"};
        return {static_cast<double>(bytes.*of / result.record.iterations), ""};
    };
    result.sent_bytes_per_step = per_step(&comm::SumTraffic::sent);
    result.between_nodes_bytes_per_step = per_step(&comm::SumTraffic::between_nodes);
    result.out_of_node_bytes_per_step = per_step(&comm::SumTraffic::out_of_node);
    result.statistics_sums_per_step =
        largest_of_ranks(group, statistics.sums / result.record.iterations);
    result.statistics_bytes_per_step =
        largest_of_ranks(group, statistics.bytes / result.record.iterations);
    result.statistics_seconds = mean_over_ranks(group, statistics.seconds);
}

/// The mean over the ranks is what a rank has waited; the most that one has sent.
void record_messages(comm::Communicator& group, const training::MessageAccounting& messages,
                     GroupResult& result) {
    if (messages.steps == 0) return;
    result.message_wait_seconds = mean_over_ranks(group, messages.wait_seconds);
    result.message_bytes_per_step = largest_of_ranks(group, messages.bytes_sent / messages.steps);
    result.part_wait_seconds = mean_over_ranks(group, messages.parts.wait_seconds);
    result.part_bytes_per_step =
        largest_of_ranks(group, messages.parts.bytes_sent / messages.steps);
}

/// Those that train one model.
struct Ranks {
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
    ProgressReporter& progress;
};

/// Also of a training that failed.
void count_steps(const training::StepLog& steps, GroupRecord& record) {
    record.iterations = std::ssize(steps.steps());
    record.samples_trained = 0;
    for (const StepRecord& step : steps.steps()) record.samples_trained += step.samples;
}

/// All epochs; fills the record's work and times. The clock has started before anything else: the
/// last barrier of the start-up lies just behind it.
StepTimes train(const Training& training, GroupResult& result) {
    const auto& [start, model, group, replicas, reducer, log, clock, steps, counters, progress] =
        training;
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
    const training::PipelineShare share{layout, model.networks(), group, replicas,
                                        model.exchange()};
    training::Trainer trainer({config, *share.networks.front(), steps_per_epoch, reducer,
                               config::has_pipeline(config.parallel) ? &share : nullptr, &steps,
                               &model.statistics_span()},
                              *start.device, model.store(), group);
    progress.begin();
    for (int epoch = 0; epoch < config.workload.epochs; ++epoch) {
        const auto number = static_cast<std::uint32_t>(epoch);
        source.begin(number);
        const training::EpochReport report =
            trainer.train_epoch(epoch, source.batches(),
                                [&](const training::StepReport& step) { progress.step(step); });
        record.epoch_seconds.push_back(report.seconds);
        record.final_training_loss = {report.mean_loss, ""};
        record.audit.passed = trainer.audit().passed();
        record.skipped_steps = trainer.skipped_steps();
        evaluate_between({start, model, group, trainer, clock, steps}, epoch + 1, record);
        if (group.rank() != 0) continue;
        log.info("epoch {}/{}: loss {:.4f}, {:.2f} s, {:.1f} images/s", epoch + 1,
                 config.workload.epochs, report.mean_loss, report.seconds,
                 static_cast<double>(report.samples) / report.seconds);
    }
    const std::vector<CounterRecord> readings = counters.finish();
    count_steps(steps, record);
    const double seconds = steps.steps().back().end_seconds;
    progress.finish();
    if (model.pictures() != nullptr && group.rank() == 0)
        report_residents(model.pictures()->contents(), log);
    record.training_seconds = {seconds, ""};
    verification::derive_speed(model.training_flops_per_sample(), record);
    const comm::BucketAccounting& sums = trainer.buckets().accounting();
    const comm::StatisticsAccounting& statistics = model.statistics_span().accounting();
    record.input_wait_seconds = mean_over_ranks(group, source.batches().wait_seconds());
    *record.input_wait_seconds.value *= layout.slices();  // only the first reads
    const bool is_device_sum = replicas.size() > 1 && reducer.can_be_recorded();
    record.communication_seconds =
        mean_over_ranks(group, exposed_seconds(sums, statistics, is_device_sum));
    result.bandwidth_bytes_per_second = bandwidth_of(sums);
    result.communicated_bytes = largest_of_ranks(group, sums.bytes_reduced);
    if (replicas.size() > 1) {
        result.gradient_bytes = largest_of_ranks(
            group, static_cast<std::int64_t>(model.store().gradients().size_bytes()));
        result.buckets =
            largest_of_ranks(group, static_cast<std::int64_t>(trainer.buckets().bucket_count()));
    }
    record_traffic(start, group, reducer, statistics, result);
    record_messages(group, trainer.messages(), result);
    result.counters = counters.gather(group, readings, record);
    StepTimes times = gather_step_times(
        start, group, steps, hidden_seconds_per_step(sums, replicas.size(), is_device_sum));
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
    if (start.config.bagging.out_of_bag) {
        outcome.out_of_bag = model.sampler().out_of_bag(model.number());
        std::vector<std::uint32_t> chosen;
        for (std::uint32_t sample = 0; sample < outcome.out_of_bag.size(); ++sample) {
            if (outcome.out_of_bag[sample] != 0) chosen.push_back(sample);
        }
        if (!chosen.empty()) {
            outcome.out_of_bag_samples =
                model.predict(data::make_subset(start.samples.training, std::move(chosen)), group)
                    .predictions;
        }
    }
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

void fail(const Start& start, const Ranks& ranks, const Error& error, GroupOutcome& outcome,
          Logger& log) {
    // The leader fails with the same words unless it is the one that does not answer.
    if (ranks.group.rank() == 0 || error.code() == ExitCode::watchdog) {
        log.error("group {} failed: {}", start.place.group, error.what());
    }
    ranks.group.announce_failure(error);  // the others of the group may wait for this rank
    if (ranks.stage != nullptr) ranks.stage->announce_failure(error);  // those of its stage, too
    outcome.result.record.failure = error.what();
    outcome.status = comm::GroupStatus::of(start.place.group, comm::GroupState::failed,
                                           error.code(), error.what());
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

std::filesystem::path group_directory(const std::filesystem::path& output, int group) {
    return output / "groups" / std::to_string(group);
}

GroupResult read_failed_group(const Start& start, int group) {
    constexpr std::size_t kLimitBytes = std::size_t{16} << 20;
    GroupResult result;
    try {
        const auto path = group_directory(start.output, group) / "record.json";
        const std::vector<std::byte> bytes = storage::read_file_bytes(path, kLimitBytes);
        result = report::group_from_json(storage::text_of(bytes), path.string());
    } catch (const Error&) {
        result = {};  // it died before it could store anything
    }
    result.record.group = group;
    result.record.ranks = start.controller.layout().degree;
    return result;
}

GroupOutcome run_group(const Start& start, BaseModel& model, comm::Communicator& group,
                       std::unique_ptr<comm::GradientReducer>& reducer, Logger& log) {
    GroupOutcome outcome;
    const int number = start.place.group;
    GroupRecord& record = outcome.result.record;
    describe_group(start, record);
    TrainingClock clock;
    CoreCounters counters(start);
    training::StepLog steps = make_step_log(start, clock);
    ProgressReporter progress(start);
    Ranks ranks{group, nullptr};
    try {
        ranks.stage = split_stages(start, group);
        connect_parts(start, group, model);
        comm::Communicator& replicas = ranks.stage == nullptr ? group : *ranks.stage;
        reducer = connect_gradients(start, replicas, log);
        model.statistics_span().connect(replicas, sum_options_of(start).node_of_rank);
        if (number == 0 && group.rank() == 0) {
            for (const std::string& note : start.samples.notes) log.info("{}", note);
        }
        const StepTimes times =
            train({start, model, group, replicas, *reducer, log, clock, steps, counters, progress},
                  outcome.result);
        model.drop_training();
        model.collect(group);
        outcome.result.training_digest = training::training_digest(model.graph(), model.store());
        evaluate(start, model, group, log, outcome);
        comm::run_together(group, [&] {
            if (group.rank() == 0) store(start, model, outcome, steps, times);
        });
        outcome.status = comm::GroupStatus::of(number, comm::GroupState::completed);
    } catch (const training::ReplicaDivergence& error) {
        record.audit = failed_audit(start, error.divergence());
        const std::string why = describe_divergence(record.audit, error.divergence().ranks);
        fail(start, ranks, Error(error.code(), why), outcome, log);
    } catch (const Error& error) {
        fail(start, ranks, error, outcome, log);
    } catch (const std::exception& error) {
        fail(start, ranks, Error(ExitCode::internal, error.what()), outcome, log);
    }
    if (!record.training_seconds.value) record.training_seconds = {clock.seconds(), ""};
    progress.end(record.failure, outcome.status.exit_code);
    if (record.failure.empty()) return outcome;
    count_steps(steps, record);
    if (group.rank() == 0) store_failure(start, outcome.result, steps, log);
    return outcome;
}

}  // namespace hpcai::benchmark
