// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/core.h>

#include <hpcai/base/units.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/metrics/score.hpp>
#include <hpcai/metrics/step_statistics.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/report/summary.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/derive.hpp>

namespace hpcai::verification {

plan::ParallelismController place_ranks(const config::Config& config,
                                        const std::vector<int>& node_of_world_rank) {
    return {plan::make_layout(config.bagging, config.training, config.parallel,
                              static_cast<int>(node_of_world_rank.size()),
                              plan::ranks_of_fullest_node(node_of_world_rank)),
            node_of_world_rank};
}

WorkloadRecord describe_workload(const config::Config& config) {
    const auto text = [&](const char* key) { return config::value_text(config, key); };
    WorkloadRecord record;
    record.kind = text("workload.kind");
    record.problem_class = text("workload.problem_class");
    record.model = text("workload.model");
    record.level = text("run.level");
    record.classes = config.workload.classes;
    record.image_size = config.workload.image_size;
    record.image_width = image_width(config);
    record.channels = config.workload.channels;
    record.epochs = config.workload.epochs;
    record.batch_size = config.training.batch_size;
    record.sampler = text("bagging.sampler");
    record.aggregation = text("bagging.aggregation");
    record.seed = config.run.seed;
    record.data_kind = text("data.kind");
    return record;
}

void derive_topology(const plan::ParallelismController& controller, TopologyRecord& topology) {
    const plan::LayoutSummary summary = controller.summary();
    topology.ranks = summary.layout.ranks;
    topology.groups = summary.layout.groups;
    topology.degree = summary.layout.degree;
    topology.nodes = summary.nodes;
    topology.map.resize(static_cast<std::size_t>(topology.ranks));
    for (int rank = 0; rank < topology.ranks; ++rank) {
        const plan::RankPlace& place = controller.place(rank);
        PlaceRecord& row = topology.map[rank];
        row.world_rank = rank;
        row.group = place.group;
        row.group_rank = place.group_rank;
        row.node = place.node;
        row.local_rank = place.node_rank;
    }
}

void describe_group(const plan::ParallelismController& controller, const TopologyRecord& topology,
                    int group, GroupRecord& record) {
    record.group = group;
    record.ranks = controller.layout().degree;
    std::set<std::string> hosts;
    for (int rank = 0; rank < record.ranks; ++rank)
        hosts.insert(topology.map[controller.world_rank_of(group, rank)].host);
    record.hosts.assign(hosts.begin(), hosts.end());
}

FlopsRecord flops_of_model(const config::Config& config) {
    const metrics::FlopsLedger ledger(models::make_model(config));
    FlopsRecord record;
    for (const ops::LedgerName& row : ops::kLedgers) {
        record.ledgers.push_back({std::string(row.name), ledger.forward_per_sample(row.ledger),
                                  ledger.training_per_sample(row.ledger)});
        if (row.ledger != metrics::kOfficialLedger) continue;
        record.convention = row.name;
        record.forward_per_sample = ledger.forward_per_sample(row.ledger);
        record.training_per_sample = ledger.training_per_sample(row.ledger);
    }
    return record;
}

void derive_speed(double training_flops, GroupRecord& group) {
    if (!group.training_seconds.value) return;
    const double seconds = *group.training_seconds.value;
    group.images_per_second = {static_cast<double>(group.samples_trained) / seconds, ""};
    group.flops = {training_flops / seconds, ""};
}

std::int64_t normalized_batches(const config::Config& config, const plan::Layout& layout,
                                const GroupResult& result) {
    const std::int64_t steps_per_epoch = result.record.samples_drawn / config.training.batch_size;
    const std::int64_t steps =
        result.search ? result.search->best_epochs * steps_per_epoch : result.record.iterations;
    return steps * layout.micro_batches;
}

namespace {

constexpr const char* kNoGroupFinished = "no group finished";

double searched_flops(const std::vector<GroupResult>& groups) {
    double flops = 0;
    for (const GroupResult& group : groups)
        if (group.record.failure.empty() && group.search) flops += group.search->training_flops;
    return flops;
}

void derive_work(const std::vector<GroupResult>& groups, RunRecord& record) {
    std::vector<metrics::GroupWork> work;
    std::size_t epochs = 0;
    record.work = {};
    std::vector<double>& longest_epochs = record.time.epoch_seconds;
    longest_epochs.clear();
    record.training_digest.clear();
    for (const GroupResult& group : groups) {
        const GroupRecord& row = group.record;
        const bool finished = row.failure.empty();
        work.push_back({row.samples_trained, row.training_seconds.value.value_or(0), finished});
        record.work.groups.push_back(row);
        record.training_digest.push_back(finished ? group.training_digest : "");
        for (std::size_t epoch = 0; epoch < row.epoch_seconds.size(); ++epoch) {
            if (epoch == longest_epochs.size()) longest_epochs.push_back(0);
            longest_epochs[epoch] = std::max(longest_epochs[epoch], row.epoch_seconds[epoch]);
        }
        if (!finished) continue;
        record.work.samples_trained += row.samples_trained;
        record.work.iterations += row.iterations;
        epochs = std::max(epochs, row.epoch_seconds.size());
    }
    longest_epochs.resize(epochs);  // removes epochs that only failed groups reached
    double longest = 0;
    for (const metrics::GroupWork& row : work) longest = std::max(longest, row.training_seconds);
    record.time.training_seconds = {longest, ""};
    const auto speed = metrics::samples_per_second(work);
    record.throughput.images_per_second = value_or_reason(speed, kNoGroupFinished);
    record.throughput.per_rank = value_or_reason(
        speed ? std::optional(*speed / record.topology.ranks) : speed, kNoGroupFinished);
    record.scores.flops =
        value_or_reason(metrics::flops(work, record.flops.training_per_sample), kNoGroupFinished);
    if (record.search) record.scores.flops = {searched_flops(groups) / longest, ""};
}

/// Fills in target and exponent, the members' qualities, their mean and the ensemble's gain.
void derive_members(const config::Config& config, const std::vector<GroupResult>& groups,
                    QualityRecord& quality) {
    quality.target = config.workload.target_quality;
    quality.exponent = config.workload.penalty_exponent;
    quality.members.clear();
    double sum = 0;
    int finished_groups = 0;
    for (const GroupResult& group : groups) {
        const bool finished = group.record.failure.empty();
        quality.members.push_back(finished ? group.quality : no_value("the group did not finish"));
        if (!finished) continue;
        sum += group.quality.value.value_or(0);
        ++finished_groups;
    }
    if (finished_groups == 0) return;
    if (!quality.ensemble.value) {
        quality.members_mean = quality.ensemble_gain = no_value(quality.ensemble.reason);
        return;
    }
    const double mean = sum / finished_groups;
    quality.members_mean = {mean, ""};
    quality.ensemble_gain = {*quality.ensemble.value - mean, ""};
}

/// Returns VFLOPS (docs/PAPER.md, eq. 7) at both ends of members_interval or confidence_interval.
IntervalRecord vflops_interval_of(const RunRecord& record) {
    const QualityRecord& quality = record.quality;
    const bool has_members = quality.members_interval.low.value.has_value();
    const IntervalRecord& from =
        has_members ? quality.members_interval : quality.confidence_interval;
    const auto vflops_of = [&](const Quantity& end) {
        if (!end.value) return no_value(end.reason);
        const auto penalty =
            metrics::penalty_coefficient(*end.value, quality.target, quality.exponent);
        return value_or_reason(metrics::vflops(record.scores.flops.value, penalty),
                               "no speed to score");
    };
    return {vflops_of(from.low), vflops_of(from.high), from.level,
            has_members ? "from the interval over members" : "from the interval of the ensemble"};
}

void derive_scores(RunRecord& record) {
    std::optional<double> penalty;
    if (record.quality.ensemble.value) {
        penalty = metrics::penalty_coefficient(*record.quality.ensemble.value,
                                               record.quality.target, record.quality.exponent);
    }
    const std::string none = "no quality to score";
    record.scores.penalty_coefficient = value_or_reason(penalty, none);
    record.scores.vflops =
        value_or_reason(metrics::vflops(record.scores.flops.value, penalty), none);
    record.scores.vflops_interval = vflops_interval_of(record);
}

Quantity seconds_to_target(const GroupRecord& group, double target) {
    const auto reached = std::ranges::find_if(
        group.quality_by_epoch,
        [&](const EpochQualityRecord& point) { return point.quality >= target; });
    if (reached == group.quality_by_epoch.end()) {
        return no_value(fmt::format("the model of group {} did not reach the target", group.group));
    }
    return {reached->training_seconds, ""};
}

ParameterRecord as_configured(const config::Config& config, const std::string& key) {
    const std::size_t dot = key.find('.');
    const config::Key* row = config::find_key(key.substr(0, dot), key.substr(dot + 1));
    return {key, config::value_text(config, key), row != nullptr ? row->meaning : ""};
}

void add_parallel(const config::Config& config, const plan::Layout& layout,
                  std::vector<ParameterRecord>& parameters) {
    parameters.push_back({"parallel.mode", config::value_text(config, "parallel.mode"),
                          "how the ranks of a group divide a step"});
    if (layout.partitions() > 1) {
        parameters.push_back({"parallel.data_degree", std::to_string(layout.data_degree()),
                              "ranks that share the samples of a batch"});
        parameters.push_back({"parallel.pipeline_degree", std::to_string(layout.stages),
                              "consecutive stages of the model"});
        parameters.push_back({"parallel.model_degree", std::to_string(layout.shards),
                              "ranks that share the channels of each layer"});
    }
    if (config::has_pipeline(config.parallel)) {
        parameters.push_back({"parallel.micro_batches", std::to_string(layout.micro_batches),
                              "consecutive parts of a rank's samples"});
    }
}

}  // namespace

void derive_results(const config::Config& config, const plan::ParallelismController& controller,
                    const std::vector<GroupResult>& groups, RunRecord& record) {
    derive_work(groups, record);
    derive_members(config, groups, record.quality);
    derive_scores(record);
    derive_time_to_quality(config, record);
    derive_traffic(config, controller, groups, record);
    std::vector<TimeBreakdownRecord> breakdowns;
    for (const GroupRecord& group : record.work.groups)
        if (group.failure.empty()) breakdowns.push_back(group.time_breakdown);
    record.time_breakdown = metrics::maximum_over_groups(breakdowns, kNoGroupFinished);
    record.utilization =
        utilization_of(record.roofline, record.scores.flops, record.topology.ranks);
}

std::string summary_digest(const RunRecord& record) {
    return storage::sha256_hex(storage::bytes_of(report::summary(record, "")));
}

UtilizationRecord utilization_of(const CeilingRecord& ceiling, const Quantity& flops, int ranks) {
    UtilizationRecord utilization{flops, flops.value ? ceiling.ceiling_flops : flops};
    if (!flops.value) return utilization;
    utilization.flops_per_rank = {*flops.value / ranks, ""};
    if (ceiling.ceiling_flops.value) {
        utilization.fraction = {*utilization.flops_per_rank.value / *ceiling.ceiling_flops.value,
                                ""};
    }
    return utilization;
}

void derive_time_to_quality(const config::Config& config, RunRecord& record) {
    Quantity& time = record.time.time_to_quality_seconds;
    time =
        no_value(config.run.evaluate_epochs == 0 ? "run.evaluate_epochs is 0" : kNoGroupFinished);
    if (config.run.evaluate_epochs == 0) return;
    for (const GroupRecord& group : record.work.groups) {
        if (!group.failure.empty()) continue;
        const Quantity seconds = seconds_to_target(group, record.quality.target);
        if (!seconds.value) {
            time = seconds;
            return;
        }
        time = {std::max(time.value.value_or(0), *seconds.value), ""};
    }
}

void derive_learning_curve(const config::Config& config, const std::vector<StepRecord>& steps,
                           GroupResult& result) {
    const std::vector<EpochQualityRecord> stored = std::move(result.record.quality_by_epoch);
    std::vector<EpochQualityRecord>& curve = result.record.quality_by_epoch;
    curve.clear();
    const int every = config.run.evaluate_epochs;
    const int last = config.workload.epochs;
    if (every == 0 || !result.quality.value) return;
    for (int epoch = every; epoch < last; epoch += every) {
        const auto end = std::ranges::upper_bound(steps, epoch - 1, {}, &StepRecord::epoch);
        const double seconds = end == steps.begin() ? 0 : std::prev(end)->end_seconds;
        const std::size_t index = curve.size();
        curve.push_back({epoch, seconds, index < stored.size() ? stored[index].quality : 0});
    }
    curve.push_back(
        {last, result.record.training_seconds.value.value_or(0), *result.quality.value});
}

std::vector<ParameterRecord> summary_settings(const config::Config& config,
                                              const plan::Layout& layout,
                                              const std::string& precision) {
    std::vector<ParameterRecord> parameters{
        {"bagging.M", std::to_string(layout.groups), "base models trained at the same time"},
        {"bagging.P_degree", std::to_string(layout.degree), "ranks that train one base model"}};
    add_parallel(config, layout, parameters);
    parameters.push_back({"training.precision", precision, "effective precision"});
    if (const auto samples = config.training.batch_norm_samples) {
        parameters.push_back({"training.batch_norm_samples", std::to_string(*samples),
                              "samples that share a BatchNorm statistic"});
    }
    for (const char* key :
         {"workload.model", "workload.image_size", "workload.epochs", "training.batch_size",
          "training.optimizer", "training.learning_rate", "training.schedule", "bagging.sampler",
          "bagging.aggregation", "communication.backend", "communication.algorithm",
          "communication.precision", "run.seed"}) {
        parameters.push_back(as_configured(config, key));
        if (key == std::string_view("workload.image_size") &&
            config::image_width(config) != config.workload.image_size)
            parameters.push_back(as_configured(config, "workload.image_width"));
    }
    if (!config.run.keep_weights) parameters.push_back(as_configured(config, "run.keep_weights"));
    return parameters;
}

void add_summary_facts(const StagingRecord& staging, const std::vector<GroupResult>& groups,
                       std::vector<ParameterRecord>& parameters) {
    const auto text = [](std::int64_t bytes) {
        return format_bytes(static_cast<std::uint64_t>(bytes));
    };
    if (staging.scope != "none") {
        parameters.push_back({"staged", text(staging.copied_bytes),
                              fmt::format("copied to the nodes' disks; {} were already there",
                                          text(staging.reused_bytes))});
    }
    const auto add_sum = [&](const char* key, std::int64_t GroupResult::*count,
                             const char* meaning) {
        std::int64_t sum = 0;
        for (const GroupResult& group : groups) sum += group.*count;
        if (sum > 0) parameters.push_back({key, std::to_string(sum), meaning});
    };
    add_sum("bad samples", &GroupResult::bad_samples,
            "damaged files, which the logs of the groups name");
    add_sum("decoder warnings", &GroupResult::decoder_warnings,
            "undamaged images with a decoder warning; `hpcai500 data check` prints the warnings");
}

}  // namespace hpcai::verification
