// SPDX-License-Identifier: Apache-2.0
#include "record.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string>

#include <fmt/ranges.h>

#include <hpcai/base/units.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/metrics/score.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/plan/pipeline.hpp>

#include "ceiling.hpp"
#include "determinism.hpp"
#include "environment.hpp"
#include "verdict.hpp"
#include "workload.hpp"

namespace hpcai::benchmark {
namespace {

Quantity or_reason(std::optional<double> value, const std::string& reason) {
    return value ? Quantity{value, ""} : Quantity{std::nullopt, reason};
}

std::vector<ParameterRecord> echo(const Start& start) {
    constexpr std::array kKeys{
        "workload.model",          "workload.image_size",     "workload.epochs",
        "training.batch_size",     "training.optimizer",      "training.learning_rate",
        "training.schedule",       "bagging.sampler",         "bagging.aggregation",
        "communication.algorithm", "communication.precision", "run.seed",
    };
    const plan::Layout& layout = start.controller.layout();
    std::vector<ParameterRecord> parameters{
        {"bagging.M", std::to_string(layout.groups), "base models trained at the same time"},
        {"bagging.P_degree", std::to_string(layout.degree), "ranks that train one base model"},
        {"training.precision", std::string(name_of(start.precision)), "precision in force"},
    };
    for (const std::string key : kKeys) {
        const std::size_t dot = key.find('.');
        const config::Key* row = config::find_key(key.substr(0, dot), key.substr(dot + 1));
        parameters.push_back(
            {key, config::value_text(start.config, key), row != nullptr ? row->meaning : ""});
    }
    return parameters;
}

TopologyRecord topology(const Start& start) {
    TopologyRecord record;
    const plan::LayoutSummary summary = start.controller.summary();
    record.ranks = summary.layout.ranks;
    record.groups = summary.layout.groups;
    record.degree = summary.layout.degree;
    record.nodes = summary.nodes;
    for (int rank = 0; rank < record.ranks; ++rank) {
        const plan::RankPlace& place = start.controller.place(rank);
        const auto index = static_cast<std::size_t>(rank);
        record.map.push_back({rank, place.group, place.group_rank, place.node, place.node_rank,
                              start.ranks[index].threads, start.hostnames[index],
                              start.ranks[index].device});
    }
    return record;
}

WorkloadRecord workload(const Start& start) {
    const config::Config& config = start.config;
    const auto text = [&](const char* key) { return config::value_text(config, key); };
    WorkloadRecord record;
    record.kind = text("workload.kind");
    record.model = text("workload.model");
    record.level = text("run.level");
    record.classes = config.workload.classes;
    record.image_size = config.workload.image_size;
    record.image_width = image_width(config);
    record.channels = config.workload.channels;
    record.epochs = config.workload.epochs;
    record.batch_size = config.training.batch_size;
    record.precision = name_of(start.precision);
    record.sampler = text("bagging.sampler");
    record.aggregation = text("bagging.aggregation");
    record.seed = config.run.seed;
    record.data_kind = text("data.kind");
    record.training_samples = start.samples.training->samples();
    record.validation_samples = start.samples.validation->samples();
    return record;
}

FlopsRecord flops_of_model(const config::Config& config) {
    const metrics::FlopsLedger ledger(models::make_model(config));
    FlopsRecord record;
    for (const ops::LedgerName& one : ops::kLedgers) {
        record.ledgers.push_back({std::string(one.name), ledger.forward_per_sample(one.ledger),
                                  ledger.training_per_sample(one.ledger)});
        if (one.ledger != metrics::kOfficialLedger) continue;
        record.convention = one.name;
        record.forward_per_sample = ledger.forward_per_sample(one.ledger);
        record.training_per_sample = ledger.training_per_sample(one.ledger);
    }
    return record;
}

/// Results of all M groups in order; a group that did not vote is known by its status, and by what
/// it may have stored.
std::vector<GroupResult> all_groups(const Start& start, const Vote& vote,
                                    const std::vector<comm::GroupStatus>& statuses) {
    std::vector<GroupResult> results;
    for (const comm::GroupStatus& status : statuses) {
        const auto voted = std::find_if(
            vote.members.begin(), vote.members.end(),
            [&](const GroupResult& result) { return result.record.group == status.group; });
        if (voted != vote.members.end()) {
            results.push_back(*voted);
            continue;
        }
        GroupResult lost = read_failed_group(start, status.group);
        if (lost.record.failure.empty()) lost.record.failure = status.reason_text();
        if (lost.record.failure.empty()) lost.record.failure = "not heard of at the end";
        results.push_back(std::move(lost));
    }
    return results;
}

void add_work(const std::vector<GroupResult>& groups, RunRecord& record) {
    std::vector<metrics::GroupWork> work;
    std::size_t epochs = 0;
    for (const GroupResult& group : groups) {
        const GroupRecord& row = group.record;
        const bool finished = row.failure.empty();
        work.push_back({row.samples_trained, row.training_seconds.value.value_or(0), finished});
        record.work.groups.push_back(row);
        record.training_digest.push_back(finished ? group.training_digest : "");
        if (!finished) continue;
        record.work.samples_trained += row.samples_trained;
        record.work.iterations += row.iterations;
        epochs = std::max(epochs, row.epoch_seconds.size());
    }
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
        double longest = 0;
        for (const GroupRecord& row : record.work.groups) {
            if (epoch < row.epoch_seconds.size()) {
                longest = std::max(longest, row.epoch_seconds[epoch]);
            }
        }
        record.time.epoch_seconds.push_back(longest);
    }
    double longest = 0;
    for (const metrics::GroupWork& one : work) longest = std::max(longest, one.training_seconds);
    record.time.training_seconds = {longest, ""};
    const auto speed = metrics::samples_per_second(work);
    record.throughput.images_per_second = or_reason(speed, "no group finished");
    record.throughput.per_rank = or_reason(
        speed ? std::optional(*speed / record.topology.ranks) : speed, "no group finished");
    record.scores.flops =
        or_reason(metrics::flops(work, record.flops.training_per_sample), "no group finished");
}

void add_quality(const Start& start, const Vote& vote, const std::vector<GroupResult>& groups,
                 RunRecord& record) {
    QualityRecord& quality = record.quality;
    quality = vote.quality;
    quality.metric = make_workload(start)->metric();
    quality.target = start.config.workload.target_quality;
    quality.exponent = start.config.workload.penalty_exponent;
    double sum = 0;
    for (const GroupResult& group : groups) {
        const bool finished = group.record.failure.empty();
        quality.members.push_back(finished ? group.quality : nothing("the group did not finish"));
        if (finished) sum += group.quality.value.value_or(0);
    }
    if (vote.members.empty()) return;
    if (!quality.ensemble.value) {
        quality.members_mean = quality.ensemble_gain = nothing(quality.ensemble.reason);
        return;
    }
    const double mean = sum / static_cast<double>(vote.members.size());
    quality.members_mean = {mean, ""};
    quality.ensemble_gain = {*quality.ensemble.value - mean, ""};
}

void add_scores(RunRecord& record) {
    std::optional<double> penalty;
    if (record.quality.ensemble.value) {
        penalty = metrics::penalty_coefficient(*record.quality.ensemble.value,
                                               record.quality.target, record.quality.exponent);
    }
    const std::string none = "no quality to score";
    record.scores.penalty_coefficient = or_reason(penalty, none);
    record.scores.vflops = or_reason(metrics::vflops(record.scores.flops.value, penalty), none);
    const std::string no_meter = "this machine shows no energy meter to the program";
    record.scores.vflops_per_watt = {std::nullopt, no_meter};
    record.energy.joules = {std::nullopt, no_meter};
    record.energy.average_watts = {std::nullopt, no_meter};
}

/// The greatest or least of what groups have, else the last reason why they have none.
class Extreme {
public:
    explicit Extreme(bool is_greatest) : is_greatest_(is_greatest) {}
    void add(const Quantity& one) {
        if (!one.value) {
            if (!one.reason.empty()) reason_ = one.reason;
        } else if (!value_ || (is_greatest_ ? *one.value > *value_ : *one.value < *value_)) {
            value_ = one.value;
        }
    }
    Quantity quantity() const { return or_reason(value_, reason_); }

private:
    bool is_greatest_;
    std::optional<double> value_;
    std::string reason_ = "no group finished";
};

Quantity per_step(const GroupRecord& record) {
    const Quantity& seconds = record.communication_seconds;
    if (!seconds.value || record.iterations == 0) return {std::nullopt, seconds.reason};
    return {*seconds.value / static_cast<double>(record.iterations), ""};
}

void add_communication(const Start& start, const std::vector<GroupResult>& groups,
                       RunRecord& record) {
    CommunicationRecord& communication = record.communication;
    std::set<std::string> backends;
    communication.algorithm = config::value_text(start.config, "communication.algorithm");
    communication.precision = config::value_text(start.config, "communication.precision");
    communication.statistics_ranks =
        plan::statistics_ranks(start.config.training, start.controller.layout());
    Extreme exposed(true), step(true), sent(true), between(true), out_of_node(true),
        bandwidth(false), statistics(true);
    for (const GroupResult& group : groups) {
        communication.gradient_bytes = std::max(communication.gradient_bytes, group.gradient_bytes);
        communication.buckets = std::max(communication.buckets, group.buckets);
        if (!group.sum_backend.empty()) backends.insert(group.sum_backend);
        sent.add(group.sent_bytes_per_step);
        exposed.add(group.record.communication_seconds);
        step.add(per_step(group.record));
        bandwidth.add(group.bandwidth_bytes_per_second);
        between.add(group.between_nodes_bytes_per_step);
        out_of_node.add(group.out_of_node_bytes_per_step);
        statistics.add(group.statistics_seconds);
        communication.statistics_sums_per_step =
            std::max(communication.statistics_sums_per_step, group.statistics_sums_per_step);
        communication.statistics_bytes_per_step =
            std::max(communication.statistics_bytes_per_step, group.statistics_bytes_per_step);
    }
    communication.backend =
        backends.empty() ? "none" : fmt::format("{}", fmt::join(backends, " and "));
    communication.exposed_seconds = exposed.quantity();
    communication.exposed_seconds_per_step = step.quantity();
    communication.bandwidth_bytes_per_second = bandwidth.quantity();
    communication.sent_bytes_per_step = sent.quantity();
    communication.between_nodes_bytes_per_step = between.quantity();
    communication.out_of_node_bytes_per_step = out_of_node.quantity();
    communication.statistics_seconds = statistics.quantity();
}

void add_parallel(const Start& start, const std::vector<GroupResult>& groups, RunRecord& record) {
    const plan::Layout& layout = start.controller.layout();
    ParallelRecord& parallel = record.parallel;
    parallel.mode = config::value_text(start.config, "parallel.mode");
    parallel.data_degree = layout.data_degree();
    parallel.pipeline_degree = layout.stages;
    parallel.model_degree = layout.parts;
    parallel.micro_batches = layout.micro_batches;
    parallel.schedule = config::value_text(start.config, "parallel.schedule");
    const Quantity one_stage{std::nullopt, "the model is in one stage"};
    parallel.bubble_fraction = parallel.message_wait_seconds = one_stage;
    parallel.part_wait_seconds = {std::nullopt, "the layers are in one part"};
    Extreme message_wait(true), part_wait(true);
    for (const GroupResult& group : groups) {
        message_wait.add(group.message_wait_seconds);
        part_wait.add(group.part_wait_seconds);
        if (layout.stages > 1) {
            parallel.message_bytes_per_step =
                std::max(parallel.message_bytes_per_step, group.message_bytes_per_step);
        }
        parallel.part_bytes_per_step =
            std::max(parallel.part_bytes_per_step, group.part_bytes_per_step);
    }
    if (layout.parts > 1) parallel.part_wait_seconds = part_wait.quantity();
    if (layout.stages == 1) return;
    parallel.bubble_fraction = {plan::bubble_fraction(layout.stages, layout.micro_batches), ""};
    parallel.message_wait_seconds = message_wait.quantity();
}

void add_staging(const data::SampleSets& samples, RunRecord& record) {
    record.staging = samples.staging;
    if (record.staging.scope == "none") {
        record.time.staging_seconds = {std::nullopt,
                                       "data are read where they lie; nothing is staged"};
        return;
    }
    record.time.staging_seconds = {samples.staging_seconds, ""};
    const auto text = [](std::int64_t bytes) {
        return format_bytes(static_cast<std::uint64_t>(bytes));
    };
    record.parameters.push_back({"staged", text(record.staging.copied_bytes),
                                 fmt::format("copied to the nodes' disks; {} were there",
                                             text(record.staging.reused_bytes))});
}

void add_verdict(const Start& start, const Closing& closing, const std::vector<GroupResult>& groups,
                 RunRecord& record) {
    VerdictFacts facts;
    facts.training_samples = record.workload.training_samples;
    facts.validation_samples = record.workload.validation_samples;
    facts.objections = start.samples.objections;
    facts.has_score = record.scores.vflops.value.has_value();
    facts.groups = record.topology.groups;
    for (std::size_t index = 0; index < groups.size(); ++index) {
        facts.bad_samples += groups[index].bad_samples;
        if (groups[index].record.failure.empty()) continue;
        facts.failures.push_back(fmt::format("group {}: {}", index, groups[index].record.failure));
        facts.failure_codes.push_back(closing.groups[index].exit_code);
    }
    record.verdict = judge(start.config, facts);
    if (facts.bad_samples > 0) {
        record.parameters.push_back({"bad samples", std::to_string(facts.bad_samples),
                                     "damaged files met by the groups; their logs name them"});
    }
}

}  // namespace

RunRecord make_record(const Start& start, const Vote& vote, const Closing& closing) {
    const std::vector<GroupResult> groups = all_groups(start, vote, closing.groups);
    RunRecord record;
    record.program_version = HPCAI500_VERSION;
    record.name = start.config.run.name;
    record.parameters = echo(start);
    record.topology = topology(start);
    record.workload = workload(start);
    record.config = config::to_yaml(start.config);
    record.flops = flops_of_model(start.config);
    record.time.started_utc = start.started_utc;
    record.time.startup_seconds = {closing.startup_seconds - start.samples.staging_seconds, ""};
    add_staging(start.samples, record);
    record.time.vote_seconds = {vote.seconds, ""};
    record.time.total_seconds = {closing.total_seconds, ""};
    record.environment = describe_environment(start, closing.request);
    add_work(groups, record);
    add_quality(start, vote, groups, record);
    add_scores(record);
    record.roofline = start.ceiling;
    record.utilization = utilization_of(start.ceiling, record.scores.flops, record.topology.ranks);
    add_communication(start, groups, record);
    add_parallel(start, groups, record);
    record.determinism = describe_determinism(start.config.run.deterministic, start.ranks,
                                              start.controller.layout().degree);
    add_verdict(start, closing, groups, record);
    return record;
}

}  // namespace hpcai::benchmark
