// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <hpcai/base/median.hpp>
#include <hpcai/metrics/step_statistics.hpp>

namespace hpcai::metrics {
namespace {

/// Returns the smallest value v for which at least the `share` of all values is <= v (nearest-rank
/// method).
double quantile(std::span<const double> sorted, double share) {
    const double position = std::ceil(share * static_cast<double>(sorted.size()));  // from 1
    return sorted[static_cast<std::size_t>(position) - 1];
}

std::vector<double> sort_finite(std::vector<double> values) {
    std::erase_if(values, [](double value) { return !std::isfinite(value); });
    std::ranges::sort(values);
    return values;
}

double mean_of(std::span<const StepRecord> steps, double PhaseSeconds::*phase) {
    double sum = 0;
    std::size_t known = 0;
    for (const StepRecord& step : steps) {
        const double seconds = step.phases.*phase;
        if (!std::isfinite(seconds)) continue;
        sum += seconds;
        ++known;
    }
    return known == 0 ? PhaseSeconds::kUnknown : sum / static_cast<double>(known);
}

SpreadRecord unknown_spread(const std::string& reason) {
    const Quantity unknown = no_value(reason);
    return {unknown, unknown, unknown, unknown};
}

/// Returns the spread over ranks. All numbers are unknown if any rank's value is unknown.
SpreadRecord spread_of(std::vector<double> values, const std::string& reason) {
    const std::size_t ranks = values.size();
    const std::vector<double> known = sort_finite(std::move(values));
    if (known.empty() || known.size() < ranks) return unknown_spread(reason);
    return {
        {known.front(), ""}, {median(known), ""}, {quantile(known, 0.99), ""}, {known.back(), ""}};
}

/// Returns the phases of a rank's work that are known on all ranks of a stage. The input wait is
/// unknown on GPUs.
std::vector<double PhaseSeconds::*> work_phases(const std::vector<RankRecord>& stage_ranks) {
    std::vector<double PhaseSeconds::*> known{&PhaseSeconds::input_wait, &PhaseSeconds::forward,
                                              &PhaseSeconds::backward};
    std::erase_if(known, [&](double PhaseSeconds::*phase) {
        return std::ranges::any_of(
            stage_ranks, [&](const RankRecord& rank) { return !std::isfinite(rank.mean.*phase); });
    });
    return known;
}

void find_stragglers(int group, const std::vector<RankRecord>& stage_ranks,
                     std::vector<StragglerRecord>& stragglers) {
    const std::vector<double PhaseSeconds::*> phases = work_phases(stage_ranks);
    if (phases.empty() || stage_ranks.size() < 2) return;
    const auto work_of = [&](const RankRecord& rank) {
        double sum = 0;
        for (double PhaseSeconds::*phase : phases) sum += rank.mean.*phase;
        return sum;
    };
    const auto stage_median = [&](auto value_of) {
        std::vector<double> values;
        for (const RankRecord& rank : stage_ranks) values.push_back(value_of(rank));
        return median(std::move(values));
    };
    const double median_work = stage_median(work_of);
    for (const RankRecord& rank : stage_ranks) {
        const double ratio = work_of(rank) / median_work;
        if (!(ratio > kStragglerRatio) || !(median_work > 0)) continue;
        const auto excess = [&](double PhaseSeconds::*phase) {
            return rank.mean.*phase -
                   stage_median([&](const RankRecord& other) { return other.mean.*phase; });
        };
        const auto slowest = *std::ranges::max_element(phases, {}, excess);
        stragglers.push_back({group, rank.group_rank, rank.world_rank, rank.host,
                              std::ranges::find(kPhaseSpreads, slowest, &NamedSpread::phase)->name,
                              ratio});
    }
}

void keep_maximum(Quantity& maximum, const Quantity& value) {
    if (value.value && (!maximum.value || *value.value > *maximum.value)) maximum = value;
    if (!maximum.value && !value.reason.empty()) maximum.reason = value.reason;
}

void keep_maximum(SpreadRecord& maximum, const SpreadRecord& value) {
    for (auto number : {&SpreadRecord::minimum, &SpreadRecord::median, &SpreadRecord::p99,
                        &SpreadRecord::maximum}) {
        keep_maximum(maximum.*number, value.*number);
    }
}

}  // namespace

RankRecord summarize(std::span<const StepRecord> steps, std::span<const double> step_seconds) {
    RankRecord record;
    record.steps = std::ssize(steps);
    for (const NamedSpread& row : kPhaseSpreads) record.mean.*row.phase = mean_of(steps, row.phase);
    const std::vector<double> sorted =
        sort_finite(std::vector<double>(step_seconds.begin(), step_seconds.end()));
    if (sorted.empty()) return record;
    record.median_step_seconds = median(sorted);
    record.p99_step_seconds = quantile(sorted, 0.99);
    record.longest_step_seconds = sorted.back();
    return record;
}

TimeBreakdownRecord break_down(int group, std::span<const RankRecord> ranks,
                               std::span<const int> stage, const UnknownReasons& reasons) {
    ensure(stage.size() == ranks.size(), "break_down() received stages for {} of {} ranks",
           stage.size(), ranks.size());
    TimeBreakdownRecord record;
    const auto spread = [&](auto value_of, const std::string& reason) {
        std::vector<double> values;
        for (const RankRecord& rank : ranks) values.push_back(value_of(rank));
        return spread_of(std::move(values), reason);
    };
    record.step_seconds =
        spread([](const RankRecord& rank) { return rank.median_step_seconds; }, "no step was taken")
            .median;
    for (const NamedSpread& row : kPhaseSpreads) {
        const bool is_host =
            row.phase == &PhaseSeconds::input_wait || row.phase == &PhaseSeconds::other;
        record.*row.spread = spread([&](const RankRecord& rank) { return rank.mean.*row.phase; },
                                    is_host ? reasons.host_phases : reasons.phases);
    }
    record.overlapped_communication =
        spread([](const RankRecord& rank) { return rank.overlapped_communication; },
               reasons.overlapped_communication);
    std::vector<std::vector<RankRecord>> stages;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const std::size_t index = stage[rank];
        stages.resize(std::max(stages.size(), index + 1));
        stages[index].push_back(ranks[rank]);
    }
    for (const std::vector<RankRecord>& stage_ranks : stages) {
        find_stragglers(group, stage_ranks, record.stragglers);
    }
    return record;
}

TimeBreakdownRecord maximum_over_groups(std::span<const TimeBreakdownRecord> groups,
                                        const std::string& no_reason) {
    TimeBreakdownRecord record;
    record.step_seconds = no_value(no_reason);
    record.overlapped_communication = unknown_spread(no_reason);
    for (const NamedSpread& row : kPhaseSpreads) record.*row.spread = unknown_spread(no_reason);
    for (const TimeBreakdownRecord& group : groups) {
        keep_maximum(record.step_seconds, group.step_seconds);
        keep_maximum(record.overlapped_communication, group.overlapped_communication);
        for (const NamedSpread& row : kPhaseSpreads) {
            keep_maximum(record.*row.spread, group.*row.spread);
        }
        record.stragglers.insert(record.stragglers.end(), group.stragglers.begin(),
                                 group.stragglers.end());
    }
    return record;
}

}  // namespace hpcai::metrics
