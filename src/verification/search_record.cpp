// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <ranges>

#include <hpcai/base/error.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/ops/flops.hpp>
#include <hpcai/verification/search.hpp>

namespace hpcai::verification {
namespace {

constexpr int kCurvePoints = 100;
constexpr const char* kWorkLedger = "aiperf";  // of SearchRecord::work

std::string official_ledger() {
    for (const ops::LedgerName& row : ops::kLedgers)
        if (row.ledger == metrics::kOfficialLedger) return std::string(row.name);
    return "";
}

const SampleFlops& flops_in(const std::vector<SampleFlops>& flops, const std::string& ledger) {
    const auto found = std::ranges::find(flops, ledger, &SampleFlops::ledger);
    require(found != flops.end(), ExitCode::data, "a trial has no FLOPs of the ledger {}", ledger);
    return *found;
}

/// Returns the FLOPs of one epoch with its evaluation. A trial's epochs have equally many samples.
double work_of_epoch(const FinishedTrial& trial) {
    const auto epochs = static_cast<double>(trial.accuracy.size());
    const SampleFlops& flops = flops_in(trial.flops, kWorkLedger);
    return static_cast<double>(flops.training) * static_cast<double>(trial.samples_trained) /
               epochs +
           static_cast<double>(flops.evaluation) * static_cast<double>(trial.samples_evaluated) /
               epochs;
}

std::vector<const FinishedTrial*> completed_trials(const search::History& history) {
    std::vector<const FinishedTrial*> trials;
    for (const search::Trial& trial : history.trials())
        if (trial.accuracy()) trials.push_back(&*trial.finished);
    return trials;
}

/// The members of a search, and the number of samples on which their trials are evaluated.
struct Members {
    std::span<const search::History* const> histories;
    std::int64_t hold_out_samples = 0;
};

/// Returns `ops` x -ln(error). The error is at least half a sample: no smaller one is measurable.
double regulated_of(double ops, double accuracy, std::int64_t samples) {
    return ops * -std::log(std::max(1 - accuracy,
                                    0.5 / static_cast<double>(std::max<std::int64_t>(samples, 1))));
}

void add(const SearchSeconds& part, SearchSeconds& sum) {
    sum.proposing += part.proposing;
    sum.building += part.building;
    sum.training += part.training;
    sum.evaluating += part.evaluating;
    sum.other += part.other;
}

/// Returns the last trial that completed or failed, so that failures at the end cost time, too.
const FinishedTrial& last_trial(const search::History& history) {
    return *std::ranges::find_if(std::views::reverse(history.trials()), [](const auto& trial) {
                return trial.finished.has_value();
            })->finished;
}

/// Adds the seconds of `trials`. `other` is the rest until `end_seconds`, the last trial's end.
SearchSeconds spent_by(const std::vector<const FinishedTrial*>& trials, double end_seconds) {
    SearchSeconds spent;
    for (const FinishedTrial* trial : trials) {
        spent.proposing += trial->proposing_seconds;
        spent.building += trial->building_seconds;
        spent.training += trial->training_seconds;
        spent.evaluating += trial->evaluating_seconds;
    }
    const double known = spent.proposing + spent.building + spent.training + spent.evaluating;
    spent.other = std::max(0.0, end_seconds - known);
    return spent;
}

/// Returns the state of the search `seconds` after the end of start-up.
SearchPoint point_at(double seconds, const Members& members) {
    SearchPoint point{.seconds = seconds};
    double work = 0;
    for (const search::History* history : members.histories) {
        for (const FinishedTrial* trial : completed_trials(*history)) {
            const auto done = std::ranges::upper_bound(trial->epoch_seconds, seconds) -
                              trial->epoch_seconds.begin();
            work += static_cast<double>(done) * work_of_epoch(*trial);
            if (done < std::ssize(trial->epoch_seconds)) continue;
            ++point.trials;
            point.best_accuracy = std::max(point.best_accuracy, trial->accuracy.back());
        }
    }
    point.ops = work / seconds;
    point.regulated = regulated_of(point.ops, point.best_accuracy, members.hold_out_samples);
    return point;
}

std::vector<FamilyRecord> family_of(std::span<const search::History* const> members) {
    std::vector<FamilyRecord> family;
    for (const search::History* history : members) {
        for (const search::Trial& trial : history->trials()) {
            if (!trial.accuracy()) continue;
            const ProposedTrial& proposed = trial.proposed;
            family.push_back({{history->group(), proposed.sequence},
                              proposed.parent,
                              proposed.edits.empty() ? "" : proposed.edits.back().kind,
                              trial.finished->accuracy.back(),
                              trial.finished->begin_seconds,
                              trial.finished->end_seconds});
        }
    }
    std::ranges::sort(family, {}, [](const FamilyRecord& row) {
        return std::pair(row.id.sequence, row.id.group);
    });
    return family;
}

}  // namespace

const SampleFlops& official_flops(const std::vector<SampleFlops>& flops) {
    return flops_in(flops, official_ledger());
}

int best_trial(const search::History& history) {
    int best = -1;
    double highest = -1;
    for (const search::Trial& trial : history.trials()) {
        const double accuracy = trial.accuracy().value_or(-1);
        if (accuracy <= highest) continue;
        highest = accuracy;
        best = trial.proposed.sequence;
    }
    require(best >= 0, ExitCode::data, "{}: no trial has completed", history.name());
    return best;
}

std::string end_reason(const search::History& history) {
    const std::vector<search::Trial>& trials = history.trials();
    if (std::ssize(trials) <= kMaxFailures) return "";
    const bool has_ended =
        std::all_of(trials.end() - kMaxFailures, trials.end(), [](const search::Trial& trial) {
            return trial.finished && trial.finished->state == TrialState::failed;
        });
    if (!has_ended) return "";
    return fmt::format("its last {} trials failed, at last because {}", kMaxFailures,
                       trials.back().finished->reason);
}

GroupSearchRecord describe_search(const search::History& history) {
    const std::vector<const FinishedTrial*> trials = completed_trials(history);
    const search::Trial& best = history.trials()[static_cast<std::size_t>(best_trial(history))];
    GroupSearchRecord record;
    record.trials = static_cast<int>(trials.size());
    record.best = best.proposed.sequence;
    record.best_accuracy = *best.accuracy();
    record.best_epochs = static_cast<int>(best.finished->accuracy.size());
    record.edits = best.proposed.edits;
    for (const FinishedTrial* trial : trials) {
        record.work += static_cast<double>(trial->accuracy.size()) * work_of_epoch(*trial);
        record.training_flops += static_cast<double>(trial->samples_trained) *
                                 static_cast<double>(official_flops(trial->flops).training);
    }
    const FinishedTrial& last = last_trial(history);
    const bool has_failed = last.state == TrialState::failed;
    record.seconds = has_failed ? last.end_seconds : last.epoch_seconds.back();
    record.spent = spent_by(trials, last.end_seconds);
    record.history_sha256 = history.last_sha256();
    record.end_reason = end_reason(history);
    return record;
}

SearchRecord derive_search(std::span<const search::History* const> members,
                           std::int64_t hold_out_samples) {
    SearchRecord record;
    record.hold_out_samples = hold_out_samples;
    record.best_accuracy = -1;
    for (const search::History* history : members) {
        const GroupSearchRecord group = describe_search(*history);
        record.trials += group.trials;
        record.work += group.work;
        record.seconds = std::max(record.seconds, group.seconds);
        add(group.spent, record.spent);
        if (!group.end_reason.empty())
            record.early_ends.push_back(
                fmt::format("group {}: {}", history->group(), group.end_reason));
        if (group.best_accuracy <= record.best_accuracy) continue;
        record.best_accuracy = group.best_accuracy;
        record.best = {history->group(), group.best};
    }
    record.ops = record.work / record.seconds;
    record.regulated = regulated_of(record.ops, record.best_accuracy, hold_out_samples);
    for (int point = 1; point <= kCurvePoints; ++point) {
        // The last point counts all epochs, so its time must not be rounded.
        const double seconds =
            point == kCurvePoints ? record.seconds : record.seconds * point / kCurvePoints;
        record.curve.push_back(point_at(seconds, {members, hold_out_samples}));
        if (2 * point < kCurvePoints) continue;
        record.stability =
            std::max(record.stability, std::abs(record.curve.back().ops - record.ops) / record.ops);
    }
    record.family = family_of(members);
    return record;
}

std::optional<SearchRecord> search_of_members(const std::vector<GroupResult>& groups,
                                              std::span<const search::History> histories,
                                              std::int64_t hold_out_samples) {
    std::vector<const search::History*> members;
    for (std::size_t group = 0; group < histories.size(); ++group) {
        const bool is_member = groups[group].record.failure.empty() && groups[group].search;
        if (is_member) members.push_back(&histories[group]);
    }
    if (members.empty()) return std::nullopt;
    return derive_search(members, hold_out_samples);
}

}  // namespace hpcai::verification
