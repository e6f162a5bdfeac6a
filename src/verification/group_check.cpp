// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include <hpcai/metrics/step_statistics.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/plan/data_sampler.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/csv.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/training/weights_file.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/workloads/workload.hpp>

#include "checks.hpp"

namespace hpcai::verification {
namespace {

using storage::ElementType;
using storage::StoredTensor;

const StoredTensor& tensor_of(const storage::SafetensorsFile& file, const std::string& name,
                              ElementType type, std::int64_t elements) {
    const StoredTensor* tensor = file.find(name);
    require(tensor != nullptr, ExitCode::data, "has no tensor {}", name);
    const std::size_t bytes = static_cast<std::size_t>(elements) * storage::size_of(type);
    require(tensor->type == type && tensor->bytes.size() == bytes, ExitCode::data,
            "tensor {} has a wrong type or {} bytes; must have {}", name, tensor->bytes.size(),
            bytes);
    return *tensor;
}

std::string digest_of(const storage::SafetensorsFile& file, const graph::Graph& graph) {
    storage::Sha256 digest;
    // The digest is of the values in the order of graph::ParameterStore.
    const auto add = [&](const std::string& name, std::int64_t elements, std::int64_t rows,
                         std::int64_t pixels) {
        const StoredTensor& tensor = tensor_of(file, name, ElementType::f32, elements);
        const std::vector<float> values = training::values_in_store(tensor, rows, pixels);
        digest.update(std::as_bytes(std::span(values)));
    };
    for (const graph::Parameter& parameter : graph.parameters()) {
        const bool is_filters = parameter.kind == graph::ParameterKind::filters;
        const std::int64_t pixels =
            is_filters ? parameter.shape[1] * parameter.shape[2] : parameter.pixels;
        add(parameter.name, parameter.shape.elements(), parameter.shape[0], pixels);
    }
    for (const graph::NormStatistics& statistics : graph.statistics()) {
        add(statistics.name + ".running_mean", statistics.channels, 1, 1);
        add(statistics.name + ".running_var", statistics.channels, 1, 1);
    }
    return digest.finish_hex();
}

/// Checks the batch counts, which the digest does not include, and the number of tensors.
void check_other_tensors(const storage::SafetensorsFile& file, const graph::Graph& graph,
                         std::int64_t batches_trained) {
    for (const graph::NormStatistics& statistics : graph.statistics()) {
        const std::string name = statistics.name + ".num_batches_tracked";
        std::int64_t count = 0;
        std::memcpy(&count, tensor_of(file, name, ElementType::i64, 1).bytes.data(), sizeof(count));
        require(count == batches_trained, ExitCode::data, "{} is {}; must be {}", name, count,
                batches_trained);
    }
    const std::size_t expected = graph.parameters().size() + 3 * graph.statistics().size();
    require(file.tensors().size() == expected, ExitCode::data,
            "has {} tensors; must have {} for this model", file.tensors().size(), expected);
}

/// Returns the largest size of a file with the parameters, statistics and batch counts of `graph`.
std::size_t limit_bytes_of(const graph::Graph& graph) {
    constexpr std::size_t kHeader = 100'000'008;  // safetensors' limit and the length field
    std::int64_t elements = 0;
    for (const graph::Parameter& parameter : graph.parameters())
        elements += parameter.shape.elements();
    for (const graph::NormStatistics& statistics : graph.statistics())
        elements += 2 * statistics.channels + 2;  // an i64 batch count is as large as two floats
    return kHeader + sizeof(float) * static_cast<std::size_t>(elements);
}

/// Returns the training digest of the weights in `file`, whose batch counts must be `batches`.
/// Reports a finding and returns nothing if the weights do not fit `graph`.
std::optional<std::string> digest_of_weights(const std::string& file, const graph::Graph& graph,
                                             std::int64_t batches, Inspector& inspector) {
    return inspector.attempt(file, [&] {
        const std::size_t limit_bytes = limit_bytes_of(graph);
        const auto weights =
            storage::read_safetensors(inspector.checked_path(file, limit_bytes), limit_bytes);
        check_other_tensors(weights, graph, batches);
        return digest_of(weights, graph);
    });
}

struct Model {
    graph::Graph graph;
    std::int64_t training_flops_per_sample;
};

using Owners = std::map<std::string, int>;  // groups by digests

class GroupCheck {
public:
    GroupCheck(const Claim& claim, const Model& model, Inspector& inspector, Owners& owners,
               int group)
        : claim_(claim),
          model_(model),
          inspector_(inspector),
          owners_(owners),
          group_(group),
          files_{file("record.json"), file("steps.csv"), file("ranks.csv")} {}

    GroupResult check(workloads::PredictionCheck* predictions) {
        const std::string& name = files_.record;
        const GroupRecord& listed = claim_.record.work.groups[group_];
        const bool is_member = listed.failure.empty();
        if (!is_member && !inspector_.has(name)) return missing_result(listed);
        const auto stored =
            inspector_.parse(name, records::from_json<GroupResult>, records::to_json<GroupResult>);
        if (!stored) return missing_result(listed);
        GroupResult expected = *stored;
        describe(expected.record);
        if (expected.record.failure.empty()) {
            recompute_from_steps(expected.record);
            check_continuations(expected.record);
            check_health(expected.record);
            recompute_steps_counter(expected);
            recompute_times(expected.record);
            derive_speed(model_.training_flops_per_sample, expected.record);
            const bool must_be_unique = is_member && predictions->add_member(group_, expected);
            if (!steps_.empty()) derive_learning_curve(claim_.config, steps_, expected);
            recompute_digest(expected);
            check_owner("training_digest", expected.training_digest);
            if (must_be_unique)
                check_owner("record.predictions_sha256", expected.record.predictions_sha256);
        }
        inspector_.compare_keys(name, records::to_json(*stored), records::to_json(expected),
                                [&](const std::string& key) { return source_of(key); });
        // A group that finished too late for the ensemble counts as failed.
        if (expected.record.failure.empty()) expected.record.failure = listed.failure;
        return expected;
    }

private:
    std::string file(const std::string& name) const {
        return workloads::group_prefix(group_) + name;
    }

    GroupResult missing_result(const GroupRecord& listed) const {
        GroupResult result;
        result.record.group = group_;
        result.record.ranks = claim_.controller.layout().degree;
        result.record.failure = listed.failure;
        return result;
    }

    void describe(GroupRecord& record) const {
        describe_group(claim_.controller, claim_.record.topology, group_, record);
        if (record.failure.empty()) record.audit.diverged_at_step = 0;
        const bool has_begun = record.failure.empty() || record.samples_drawn > 0;
        const std::int64_t samples = claim_.record.workload.training_samples;
        if (!has_begun || !is_plausible_size(record.samples_drawn, samples)) return;
        inspector_.attempt("result.json", [&] {
            const plan::DataSampler sampler(claim_.config.bagging, claim_.config.run.seed,
                                            static_cast<std::uint32_t>(samples));
            record.samples_drawn =
                static_cast<std::int64_t>(sampler.in_bag_size(static_cast<std::uint32_t>(group_)));
        });
    }

    /// Rejects sizes more than 10 standard deviations from a Poisson sampler's mean. Otherwise one
    /// forged number of training samples could make this check draw up to 2^31 samples.
    bool is_plausible_size(std::int64_t drawn, std::int64_t samples) const {
        if (claim_.config.bagging.sampler != config::Sampler::poisson) return true;
        const auto mean = static_cast<double>(samples);
        if (std::abs(static_cast<double>(drawn) - mean) <= 10 * std::sqrt(mean)) return true;
        inspector_.report(files_.record,
                          "record.samples_drawn is {}; must be near {}, according to the sampler",
                          drawn, samples);
        return false;
    }

    void recompute_from_steps(GroupRecord& record) {
        const auto steps =
            inspector_.parse(files_.steps, report::steps_from_csv, report::steps_to_csv);
        if (!steps) return;
        const std::int64_t expected = claim_.config.workload.epochs *
                                      (record.samples_drawn / claim_.config.training.batch_size);
        if (static_cast<std::int64_t>(steps->size()) != expected || steps->empty()) {
            inspector_.report(files_.steps, "has {} steps; must have {} for all epochs",
                              steps->size(), expected);
        }
        record.iterations = static_cast<std::int64_t>(steps->size());
        record.samples_trained = 0;
        for (const StepRecord& step : *steps) record.samples_trained += step.samples;
        if (!steps->empty()) record.training_seconds = {steps->back().end_seconds, ""};
        check_steps(claim_, record, *steps, files_, inspector_);
        check_epochs(claim_.config, record, *steps, files_, inspector_);
        steps_ = *steps;
    }

    /// Checks that later launches are in invocations, and that steps and times do not decrease.
    void check_continuations(const GroupRecord& record) {
        std::int64_t step = 0;
        std::string started = claim_.record.time.started_utc;
        for (const ContinuationRecord& next : record.continuations) {
            if (next.step >= step && next.step <= record.iterations &&
                next.started_utc >= started &&
                std::ranges::count(claim_.record.invocations, next.started_utc,
                                   &InvocationRecord::started_utc) > 0) {
                step = next.step;
                started = next.started_utc;
                continue;
            }
            inspector_.report(files_.record,
                              "record.continuations has step {} at {}; must be from step {} to {}, "
                              "not before {}, and in invocations of result.json",
                              next.step, next.started_utc, step, record.iterations, started);
            return;
        }
    }

    /// Checks whether the GPU driver's readings are possible. They cannot be recomputed.
    void check_health(GroupRecord& record) const {
        int last_rank = -1;
        for (DeviceHealthRecord& gpu : record.device_health) {
            const int rank = gpu.world_rank;
            const bool is_known = rank > last_rank &&
                                  rank < std::ssize(claim_.record.topology.map) &&
                                  claim_.controller.place(rank).group == group_ &&
                                  claim_.config.run.meters != config::Meters::none;
            if (!is_known) {
                inspector_.report(files_.record,
                                  "record.device_health has rank {} after {}; must have the ranks "
                                  "of the group in order, and none with run.meters none",
                                  rank, last_rank);
                return;
            }
            last_rank = rank;
            gpu.host = claim_.record.topology.map[rank].host;
            const double share = gpu.slowed_share.value.value_or(gpu.slowed_by.empty() ? 0 : 1);
            const auto is_count = [](const Quantity& count) {
                const double value = count.value.value_or(0);
                return value >= 0 && value == std::floor(value);
            };
            if (share >= 0 && share <= 1 && (share > 0) != gpu.slowed_by.empty() &&
                is_count(gpu.corrected_ecc_errors) && is_count(gpu.uncorrected_ecc_errors)) {
                continue;
            }
            inspector_.report(files_.record,
                              "record.device_health has an impossible share of polls or count of "
                              "errors of rank {}",
                              rank);
        }
    }

    /// Recomputes the counter of steps. Only the record has the time of its first reading. After a
    /// resume, a record has no counters.
    void recompute_steps_counter(GroupResult& result) {
        if (!result.record.continuations.empty()) {
            result.counters.clear();
            return;
        }
        const auto steps = std::ranges::find(result.counters, kStepsCounter, &CounterRecord::name);
        if (steps == result.counters.end() || steps->readings.empty()) {
            inspector_.report(files_.record, "counters has no readings of {}", kStepsCounter);
            return;
        }
        *steps = steps_counter(steps->host, steps->readings.front().utc_seconds, result.record);
    }

    /// Recomputes the times of phases. Keeps the reasons for missing numbers, which only the record
    /// has.
    void recompute_times(GroupRecord& record) {
        const auto ranks =
            inspector_.parse(files_.ranks, report::ranks_from_csv, report::ranks_to_csv);
        if (!ranks) return;
        if (std::ssize(*ranks) != record.ranks) {
            inspector_.report(files_.ranks, "has {} ranks; must have {}", ranks->size(),
                              record.ranks);
            return;
        }
        check_places(*ranks, record.iterations);
        if (!steps_.empty()) check_leader(ranks->front(), steps_, files_, inspector_);
        std::vector<int> stages;
        for (int rank = 0; rank < record.ranks; ++rank)
            stages.push_back(claim_.controller.layout().stage_of(rank));
        TimeBreakdownRecord& times = record.time_breakdown;
        times = metrics::break_down(group_, *ranks, stages,
                                    {times.forward.minimum.reason, times.input_wait.minimum.reason,
                                     times.overlapped_communication.minimum.reason});
    }

    void check_places(const std::vector<RankRecord>& ranks, std::int64_t steps) {
        for (const RankRecord& rank : ranks) {
            const int world_rank = claim_.controller.world_rank_of(group_, rank.group_rank);
            const auto compare = [&](const char* column, const auto& actual, const auto& expected) {
                if (actual == expected) return;
                inspector_.report(files_.ranks, "{} of rank {} is {}; must be {}", column,
                                  rank.group_rank, actual, expected);
            };
            compare("world_rank", rank.world_rank, world_rank);
            compare("host", rank.host,
                    report::csv_name(claim_.record.topology.map[world_rank].host));
            compare("steps", rank.steps, steps);
        }
    }

    void recompute_digest(GroupResult& result) {
        const std::string weights = file("weights.safetensors");
        if (!claim_.config.run.keep_weights && !inspector_.has(weights)) return;
        const std::int64_t batches =
            result.record.iterations * claim_.controller.layout().micro_batches;
        const auto digest = digest_of_weights(weights, model_.graph, batches, inspector_);
        if (digest) result.training_digest = *digest;
    }

    /// Reports a digest that another group has. Each group draws its own initial weights unless the
    /// configuration names a file with them.
    void check_owner(const std::string& key, const std::string& digest) {
        if (digest.empty() || !claim_.config.training.initial_weights.empty()) return;
        const int owner = owners_.emplace(digest, group_).first->second;
        if (owner == group_) return;
        inspector_.report(files_.record, "{} is that of group {}, which drew other initial weights",
                          key, owner);
    }

    std::string source_of(const std::string& key) const {
        const auto begins_with = [&](std::initializer_list<std::string_view> names) {
            return std::ranges::any_of(names, [&](auto name) { return key.starts_with(name); });
        };
        if (begins_with({"record.iterations", "record.samples_trained", "record.training_seconds",
                         "record.images_per_second", "record.flops", "record.quality_by_epoch",
                         "counters"})) {
            return "according to " + file("steps.csv");
        }
        if (begins_with({"record.time_breakdown"})) return "according to " + file("ranks.csv");
        if (begins_with({"quality", "record.predictions_sha256"})) {
            return "according to " +
                   file(workloads::workload_of(claim_.config.workload).files.member) +
                   " and labels";
        }
        if (begins_with({"training_digest"})) return "according to " + file("weights.safetensors");
        if (begins_with({"record.samples_drawn"})) return "according to run.seed and the sampler";
        return "according to the group's number and topology.map in result.json";
    }

    const Claim& claim_;
    const Model& model_;
    Inspector& inspector_;
    Owners& owners_;
    int group_;
    GroupFiles files_;
    std::vector<StepRecord> steps_;  // as stored; empty if they cannot be read
};

}  // namespace

std::vector<GroupResult> check_groups(const Claim& claim, workloads::PredictionCheck* predictions,
                                      Inspector& inspector) {
    const Model model{models::make_model(claim.config),
                      flops_of_model(claim.config).training_per_sample};
    std::vector<GroupResult> results;
    Owners owners;
    for (int group = 0; group < claim.controller.layout().groups; ++group)
        results.push_back(GroupCheck(claim, model, inspector, owners, group).check(predictions));
    return results;
}

}  // namespace hpcai::verification
