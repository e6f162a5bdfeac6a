// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include <hpcai/metrics/step_statistics.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/plan/data_sampler.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/csv.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/search.hpp>
#include <hpcai/workloads/workload.hpp>

#include "checks.hpp"

namespace hpcai::verification {
namespace {

struct Model {
    graph::Graph graph;
    std::int64_t training_flops_per_sample;
};

using Owners = std::map<std::string, int>;  // digest -> the first group that has it

/// Shared by the checks of all groups.
struct SharedState {
    Inspector& inspector;
    Owners owners = {};
};

class GroupCheck {
public:
    /// `history` is null except in an architecture search.
    GroupCheck(const Claim& claim, const Model& model, const search::History* history,
               SharedState& shared, int group)
        : claim_(claim),
          model_(model),
          history_(history),
          inspector_(shared.inspector),
          owners_(shared.owners),
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
            recompute_search(expected);
            derive_speed(training_flops(expected), expected.record);
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
    /// Recomputes `search` of the group's result, and checks the trials.
    void recompute_search(GroupResult& result) {
        result.search.reset();
        if (history_ == nullptr) return;
        inspector_.attempt(history_->name(), [&] {
            result.search = describe_search(*history_);
            check_trials(claim_, *history_, result.record, steps_, inspector_);
        });
    }

    double training_flops(const GroupResult& result) const {
        return result.search ? result.search->training_flops
                             : static_cast<double>(result.record.samples_trained) *
                                   static_cast<double>(model_.training_flops_per_sample);
    }

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
        const std::vector<TrainedEpochs> trained = trained_epochs(claim_.config, history_);
        int epochs = 0;
        for (const TrainedEpochs& part : trained) epochs += part.epochs;
        const std::int64_t expected =
            epochs * (record.samples_drawn / claim_.config.training.batch_size);
        if (static_cast<std::int64_t>(steps->size()) != expected || steps->empty()) {
            inspector_.report(files_.steps, "has {} steps; must have {} for all epochs",
                              steps->size(), expected);
        }
        record.iterations = static_cast<std::int64_t>(steps->size());
        record.samples_trained = 0;
        for (const StepRecord& step : *steps) record.samples_trained += step.samples;
        if (!steps->empty()) record.training_seconds = {steps->back().end_seconds, ""};
        check_steps(trained, record, *steps, files_, inspector_);
        check_epochs(static_cast<std::size_t>(epochs), record, *steps, files_, inspector_);
        steps_ = *steps;
    }

    /// Checks that continuing launches are in invocations, and that steps and times never decrease.
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
                              "record.continuations has step {} of launch {}; the step must be {} "
                              "to {}, the launch {} or later, and in invocations of result.json",
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
        if (result.search) check_best_digest(result);
        if (!claim_.config.run.keep_weights && !inspector_.has(weights)) return;
        const std::int64_t batches =
            normalized_batches(claim_.config, claim_.controller.layout(), result);
        const auto digest = inspector_.attempt(weights, [&] {
            const auto edits = result.search ? result.search->edits : std::vector<EditRecord>{};
            const auto graph = morphs::apply_all(model_.graph, search::morphs_of(edits));
            return digest_of_weights(weights, graph, batches, inspector_);
        });
        if (digest && *digest) result.training_digest = **digest;
    }

    /// Checks that the stored model, whose weights may be missing, is that of the best trial.
    void check_best_digest(const GroupResult& result) {
        const auto best = static_cast<std::size_t>(result.search->best);
        const std::string& digest = history_->trials()[best].finished->digest;
        if (digest == result.training_digest) return;
        inspector_.report(files_.record, "training_digest is {}; must be {}, according to {}",
                          result.training_digest, digest, history_->name());
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
        if (begins_with({"search"})) return "according to groups/<m>/" + std::string(kTrialsName);
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
    const search::History* history_;
    Inspector& inspector_;
    Owners& owners_;
    int group_;
    GroupFiles files_;
    std::vector<StepRecord> steps_;  // as stored; empty if they cannot be read
};

}  // namespace

std::vector<GroupResult> check_groups(const Claim& claim, workloads::PredictionCheck* predictions,
                                      std::span<const search::History> histories,
                                      Inspector& inspector) {
    const Model model{models::make_model(claim.config),
                      flops_of_model(claim.config).training_per_sample};
    std::vector<GroupResult> results;
    SharedState shared{inspector};
    for (int group = 0; group < claim.controller.layout().groups; ++group) {
        const search::History* const history = histories.empty() ? nullptr : &histories[group];
        results.push_back(GroupCheck(claim, model, history, shared, group).check(predictions));
    }
    return results;
}

}  // namespace hpcai::verification
