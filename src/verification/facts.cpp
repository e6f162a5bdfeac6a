// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <hpcai/report/record_text.hpp>
#include <hpcai/verification/derive.hpp>

namespace hpcai::verification {
namespace {

void add_gpus(const GroupRecord& group, VerdictFacts& facts) {
    for (const DeviceHealthRecord& gpu : group.device_health) {
        ++facts.watched_gpus;
        const std::string errors = report::errors_text(gpu);
        if (errors.empty()) continue;
        facts.gpu_errors.push_back(
            fmt::format("rank {} on {}: {}", gpu.world_rank, gpu.host, errors));
    }
}

/// Adds a message for each clock of a group whose advance (in seconds) differs from the advance of
/// UTC by more than 1 % plus 1 s. NTP changes the speed of a clock by less than 0.1 %.
void add_clocks(const GroupResult& group, std::vector<std::string>& not_rankable) {
    for (const CounterRecord& clock : group.counters) {
        if (!clock.name.starts_with(kClockPrefix) || clock.readings.empty()) continue;
        const CounterReading &first = clock.readings.front(), &last = clock.readings.back();
        const double utc = last.utc_seconds - first.utc_seconds, own = last.value - first.value;
        if (std::abs(own - utc) <= 0.01 * std::abs(utc) + 1) continue;
        not_rankable.push_back(fmt::format(
            "{} of group {} advanced by {:.1f} s while UTC advanced by {:.1f} s: not rankable",
            clock.name, group.record.group, own, utc));
    }
}

}  // namespace

VerdictFacts facts_of(const RunRecord& record, const std::vector<GroupResult>& groups) {
    VerdictFacts facts;
    facts.training_samples = record.workload.training_samples;
    if (record.search) {
        facts.training_samples += record.search->hold_out_samples;
        facts.best_accuracy = record.search->best_accuracy;
    }
    facts.validation_samples = record.workload.validation_samples;
    facts.samples_sha256 = record.workload.samples_sha256;
    facts.disqualifications = record.workload.data_disqualifications;
    facts.has_score = record.scores.vflops.value.has_value();
    facts.groups = static_cast<int>(groups.size());
    const bool was_resumed = std::ranges::any_of(
        groups, [](const GroupResult& group) { return !group.record.continuations.empty(); });
    if (was_resumed) {
        facts.not_rankable.emplace_back(
            "a group was resumed: not rankable, because the time between "
            "launches is not counted");
    }
    const auto preloaded = record.environment.find(kPreloadedFact);
    if (preloaded != record.environment.end()) {
        facts.not_rankable.push_back(fmt::format(
            "{} was preloaded: not rankable, because it can replace the clock", preloaded->second));
    }
    if (record.search) {
        for (const std::string& end : record.search->early_ends)
            facts.not_rankable.push_back(end + ": not rankable");
    }
    for (std::size_t index = 0; index < groups.size(); ++index) {
        facts.bad_samples += groups[index].bad_samples;
        if (groups[index].record.failure.empty()) {
            add_gpus(groups[index].record, facts);
            add_clocks(groups[index], facts.not_rankable);
            continue;
        }
        facts.failures.push_back(fmt::format("group {}: {}", index, groups[index].record.failure));
    }
    return facts;
}

}  // namespace hpcai::verification
