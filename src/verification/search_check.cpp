// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <hpcai/config/search_limits.hpp>
#include <hpcai/evaluation/top_k.hpp>
#include <hpcai/storage/npy.hpp>
#include <hpcai/verification/search.hpp>

#include "checks.hpp"

namespace hpcai::verification {
namespace {

constexpr double kRounding = 1e-6;  // seconds
// The last trial may end this long before the group checks search.duration_seconds.
constexpr double kPauseAtEnd = 5;  // seconds

std::string trials_file(int group) {
    return workloads::group_prefix(group) + kTrialsName;
}

/// Reports an error about a line under the name of its file.
void report_line(const Error& error, std::span<const search::History> histories,
                 Inspector& inspector) {
    std::string text = error.what();
    if (text.starts_with('\'')) {  // "'file, line 4': key: ..."
        text.erase(text.find('\'', 1), 1);
        text.erase(0, 1);
    }
    for (const search::History& history : histories) {
        if (text.starts_with(history.name())) {
            return inspector.report(history.name(), "{}",
                                    text.substr(std::min(text.size(), history.name().size() + 2)));
        }
    }
    inspector.report(trials_file(0), "{}", text);
}

/// Reads the lines of a group; the last one of an unfinished group may be incomplete. Returns
/// nothing, with a finding, if they are damaged.
std::optional<search::History> read_history(int group, bool is_finished, Inspector& inspector) {
    const std::string name = trials_file(group);
    search::History history(group, name);
    if (!is_finished && !inspector.has(name)) return history;
    const std::string text = inspector.read_text(name).value_or("");
    std::string_view rest = text;
    while (!rest.empty()) {
        const std::size_t end = rest.find('\n');
        if (end == std::string_view::npos) {
            if (is_finished) inspector.report(name, "its last line is incomplete");
            break;
        }
        try {
            history.add_line(rest.substr(0, end));
        } catch (const Error& error) {
            report_line(error, {&history, 1}, inspector);
            return std::nullopt;
        }
        rest.remove_prefix(end + 1);
    }
    if (is_finished && history.lines() % 2 == 1)
        inspector.report(name, "trial {}: has not finished", history.lines() / 2);
    return history;
}

/// With search.history own, a proposal depends on no other group.
void check_own_history(std::span<const search::History> histories) {
    for (const search::History& history : histories) {
        for (const search::Trial& trial : history.trials()) {
            const std::vector<std::int64_t>& seen = trial.proposed.seen;
            for (std::size_t group = 0; group < seen.size(); ++group) {
                require(seen[group] == 0 || std::cmp_equal(group, history.group()), ExitCode::data,
                        "{}, line {}: seen[{}]: expected 0 with search.history own, got {}",
                        history.name(), 2 * trial.proposed.sequence + 1, group, seen[group]);
            }
        }
    }
}

/// Checks that a trial was proposed only after the draws before it were too large.
void check_draws(const search::Basis& basis, const ProposalLimits& limits,
                 const search::History& history, std::span<const search::History> histories,
                 const ProposedTrial& trial) {
    const std::int64_t memory = limits.configured_memory;
    require(memory == 0 || trial.memory_bytes == memory, ExitCode::mismatch,
            "{}, line {}: memory_bytes: is {}; must be {}, according to search.max_memory_gb",
            history.name(), 2 * trial.sequence + 1, trial.memory_bytes, memory);
    search::Request request = search::request_of(history.group(), trial);
    request.draw = first_draw(limits, basis, request);
    for (; request.draw < trial.draw; ++request.draw) {
        const ProposedTrial drawn = search::propose(basis, request, histories);
        require(!refused_by(limits, basis, drawn).empty(), ExitCode::mismatch,
                "{}, line {}: draw: proposal {} exceeds no limit", history.name(),
                2 * trial.sequence + 1, request.draw);
    }
    const std::string_view limit = refused_by(limits, basis, trial);
    require(limit.empty(), ExitCode::mismatch, "{}, line {}: edits: exceed {}", history.name(),
            2 * trial.sequence + 1, limit);
}

class TrialsCheck {
public:
    TrialsCheck(const Claim& claim, const search::Basis& basis, const search::History& history,
                Inspector& inspector)
        : claim_(claim), basis_(basis), history_(history), inspector_(inspector) {}

    void check(const GroupRecord& record, const std::vector<StepRecord>& steps) {
        const std::int64_t batch = claim_.config.training.batch_size;
        const std::int64_t per_epoch = std::max<std::int64_t>(record.samples_drawn / batch, 1);
        std::size_t epochs = 0;
        double end = 0;
        for (const search::Trial& trial : history_.trials()) {
            if (!trial.finished) return;  // read_history() reports it
            const FinishedTrial& finished = *trial.finished;
            const bool has_times = finished.end_seconds > 0;
            if (has_times && finished.begin_seconds < end - kRounding)
                report(trial, "begin_seconds", "is before the end of the trial before");
            end = std::max(end, finished.end_seconds);
            check_spent(trial);
            if (finished.state == TrialState::failed) continue;
            check_counts(trial, per_epoch * batch);
            check_flops(trial);
            check_classes(trial);
            check_times(trial, record, std::exchange(epochs, epochs + epochs_of(trial)));
        }
        check_end(static_cast<std::int64_t>(epochs), end);
        check_step_times(steps);
    }

private:
    static std::size_t epochs_of(const search::Trial& trial) {
        return trial.finished->accuracy.size();
    }

    void report(const search::Trial& trial, const std::string& key, const std::string& what) {
        inspector_.report(history_.name(), "trial {}: {} {}", trial.proposed.sequence, key, what);
    }

    void check_counts(const search::Trial& trial, std::int64_t samples) {
        const FinishedTrial& finished = *trial.finished;
        const config::SearchConfig& search = claim_.config.search;
        const auto epochs = static_cast<std::int64_t>(epochs_of(trial));
        const int planned = config::trial_epochs(search, trial.proposed.sequence);
        const bool is_last = &trial == &history_.trials().back();
        const bool may_be_short = is_last && is_time_over(finished.end_seconds);
        if (epochs > planned || (epochs < planned && !may_be_short))
            report(trial, "accuracy", fmt::format("has {} epochs; must have {}", epochs, planned));
        if (finished.samples_trained != epochs * samples)
            report(trial, "samples_trained",
                   fmt::format("is {}; must be {}", finished.samples_trained, epochs * samples));
        const std::int64_t evaluated = epochs * hold_out();
        if (finished.samples_evaluated != evaluated)
            report(trial, "samples_evaluated",
                   fmt::format("is {}; must be {}", finished.samples_evaluated, evaluated));
    }

    /// Whether a search may end `seconds` after its start. A replay ends with the recorded trials.
    bool is_time_over(double seconds) const {
        const config::SearchConfig& search = claim_.config.search;
        return (search.duration_seconds > 0 && seconds + kPauseAtEnd >= search.duration_seconds) ||
               search.history == config::SearchHistory::recorded;
    }

    /// Checks the number of trials of a group that has trained `epochs` in `seconds`. search.trials
    /// may count any number of the failed trials.
    void check_end(std::int64_t epochs, double seconds) {
        const config::SearchConfig& search = claim_.config.search;
        const auto all = std::ssize(history_.trials());
        const auto completed = std::ranges::count_if(
            history_.trials(),
            [](const search::Trial& trial) { return trial.accuracy().has_value(); });
        const bool has_all = completed <= search.trials && search.trials <= all;
        const bool has_room = search.trials == 0 || all < search.trials;
        const std::int64_t next = config::trial_epochs(search, all);
        const bool is_full =
            search.duration_seconds > 0 && epochs + next > config::kMaxSearchEpochs;
        const bool may_end = is_time_over(seconds) || is_full || !end_reason(history_).empty();
        if (has_all || (has_room && may_end)) return;
        inspector_.report(history_.name(),
                          "has {} trials in {} s; must have {} (search.trials) or take "
                          "search.duration_seconds",
                          all, seconds, search.trials);
    }

    /// Checks that the parts of a trial do not take longer than the trial.
    void check_spent(const search::Trial& trial) {
        const FinishedTrial& finished = *trial.finished;
        const double parts = finished.proposing_seconds + finished.building_seconds +
                             finished.training_seconds + finished.evaluating_seconds;
        if (parts > finished.end_seconds - finished.begin_seconds + kRounding)
            report(trial, "proposing, building, training and evaluating",
                   "take longer than the trial");
    }

    void check_flops(const search::Trial& trial) {
        inspector_.attempt(history_.name(), [&] {
            const auto graph =
                morphs::apply_all(basis_.root, search::morphs_of(trial.proposed.edits));
            if (trial.finished->flops != sample_flops(graph))
                report(trial, "flops", "are not those of the edited network");
        });
    }

    /// Checks the last accuracy by the predicted classes, and that all accuracies are possible.
    void check_classes(const search::Trial& trial) {
        const std::string name = fmt::format(
            "{}trials/{}.npy", workloads::group_prefix(history_.group()), trial.proposed.sequence);
        inspector_.attempt(name, [&] {
            const auto labels = storage::read_npy(inspector_.checked_path(kHoldOutLabels));
            const auto classes = storage::read_npy(inspector_.checked_path(name));
            const auto expected = labels.as<std::int32_t>(), found = classes.as<std::int32_t>();
            require(expected.size() == found.size(), ExitCode::data, "has {} samples; must have {}",
                    found.size(), expected.size());
            const auto samples_with = [&](const auto& is_counted) {
                std::int64_t count = 0;
                for (std::size_t sample = 0; sample < found.size(); ++sample)
                    count += is_counted(found[sample], expected[sample]) ? 1 : 0;
                return count;
            };
            const std::int64_t scored = samples_with(
                [](auto predicted, auto) { return predicted != evaluation::kPaddingLabel; });
            const std::int64_t correct =
                samples_with([](auto predicted, auto label) { return predicted == label; });
            require(std::cmp_equal(scored, found.size()) ||
                        claim_.config.data.on_bad_sample == config::BadSamplePolicy::skip,
                    ExitCode::data,
                    "{} of {} samples are not scored, but data.on_bad_sample is not skip",
                    std::ssize(found) - scored, found.size());
            const auto samples = static_cast<double>(std::max<std::int64_t>(scored, 1));
            if (trial.finished->accuracy.back() != static_cast<double>(correct) / samples)
                report(trial, "accuracy", "is not that of " + name);
            for (const double accuracy : trial.finished->accuracy) {
                if (std::round(accuracy * samples) / samples == accuracy) continue;
                return report(trial, "accuracy", "is not a multiple of 1 / the scored samples");
            }
        });
    }

    /// Compares the trial's training seconds with those of its epochs. `first` is its first epoch.
    void check_times(const search::Trial& trial, const GroupRecord& record, std::size_t first) {
        const std::vector<double>& seconds = record.epoch_seconds;
        if (first + epochs_of(trial) > seconds.size()) return;  // check_epochs() reports it
        const auto begin = seconds.begin() + static_cast<std::ptrdiff_t>(first);
        const double sum =
            std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(epochs_of(trial)), 0.0);
        if (trial.finished->training_seconds != sum)
            report(trial, "training_seconds",
                   fmt::format("is {}; must be {}, according to record.epoch_seconds",
                               trial.finished->training_seconds, sum));
    }

    /// Checks that an epoch's evaluation ends between the epoch's last step and the next step.
    void check_step_times(const std::vector<StepRecord>& steps) {
        auto step = steps.begin();
        int epoch = 0;
        for (const search::Trial& trial : history_.trials()) {
            const FinishedTrial& finished = *trial.finished;
            if (finished.state == TrialState::failed) continue;
            const double begin =
                finished.begin_seconds + finished.proposing_seconds + finished.building_seconds;
            if (step != steps.end() && begin > step->end_seconds + kRounding)
                return report(trial, "begin_seconds", "does not fit the first step in steps.csv");
            for (const double end : finished.epoch_seconds) {
                const auto next = std::find_if(step, steps.end(), [&](const StepRecord& later) {
                    return later.epoch > epoch;
                });
                const bool is_possible =
                    next != step && std::prev(next)->end_seconds <= end + kRounding &&
                    (next == steps.end() || end <= next->end_seconds + kRounding);
                if (!is_possible)
                    return report(trial, "epoch_seconds", "do not follow from steps.csv");
                step = next;
                ++epoch;
            }
        }
    }

    std::int64_t hold_out() const {
        return claim_.record.search ? claim_.record.search->hold_out_samples : 0;
    }

    const Claim& claim_;
    const search::Basis& basis_;
    const search::History& history_;
    Inspector& inspector_;
};

/// Checks the number of held-out samples. A hash of each sample's name decides whether the sample
/// is held out, so the number must be within 10 standard deviations of the mean.
void check_share(const Claim& claim, std::int64_t held_out, Inspector& inspector) {
    const double share = claim.config.search.hold_out;
    const auto all = static_cast<double>(held_out + claim.record.workload.training_samples);
    const double distance = std::abs(static_cast<double>(held_out) - share * all);
    if (distance <= 10 * std::sqrt(share * (1 - share) * all)) return;
    inspector.report(kHoldOutNames,
                     "has {} of {} samples; must have about {}, according to search.hold_out",
                     held_out, all, share * all);
}

void check_hold_out(const Claim& claim, Inspector& inspector) {
    inspector.attempt(kHoldOutLabels, [&] {
        const auto labels = storage::read_npy(inspector.checked_path(kHoldOutLabels));
        const auto values = labels.as<std::int32_t>();
        const std::int64_t expected =
            claim.record.search ? claim.record.search->hold_out_samples : 0;
        require(std::cmp_equal(values.size(), expected), ExitCode::data,
                "has {} labels; must have {}", values.size(), expected);
        const bool is_legal = std::ranges::all_of(values, [&](std::int32_t label) {
            return label >= 0 && label < claim.config.workload.classes;
        });
        require(is_legal, ExitCode::data, "has a label that is no class");
    });
    const std::string text = inspector.read_text(kHoldOutNames).value_or("");
    if (!text.empty() && !text.ends_with('\n'))
        inspector.report(kHoldOutNames, "its last line is incomplete");
    std::string_view rest = text;
    std::int64_t names = 0;
    std::set<std::string> different;
    while (!rest.empty()) {
        const std::string name(rest.substr(0, rest.find('\n')));
        rest.remove_prefix(std::min(name.size() + 1, rest.size()));
        ++names;
        if (!different.insert(name).second)
            return inspector.report(kHoldOutNames, "has '{}' twice", name);
        if (data::is_held_out(name, claim.config.search.hold_out)) continue;
        return inspector.report(kHoldOutNames, "search.hold_out does not hold out '{}'", name);
    }
    if (claim.record.search && names != claim.record.search->hold_out_samples)
        inspector.report(kHoldOutNames, "has {} names; must have {}", names,
                         claim.record.search->hold_out_samples);
    check_share(claim, names, inspector);
}

}  // namespace

std::vector<search::History> check_search(const Claim& claim, Inspector& inspector) {
    std::vector<search::History> histories;
    if (!config::is_search(claim.config.workload)) return histories;
    bool any_finished = false, is_damaged = false;
    for (const GroupRecord& group : claim.record.work.groups) {
        auto history =
            read_history(static_cast<int>(histories.size()), group.failure.empty(), inspector);
        is_damaged = is_damaged || !history;
        histories.push_back(history ? *std::move(history) : search::History(0, ""));
        any_finished = any_finished || group.failure.empty();
    }
    if (is_damaged) return {};
    if (any_finished) check_hold_out(claim, inspector);
    const search::Basis basis = search_basis(claim.config);
    const ProposalLimits limits =
        proposal_limits(claim.config, basis.root, claim.controller.layout().degree,
                        claim.record.workload.precision);
    try {
        if (claim.config.search.history == config::SearchHistory::own) check_own_history(histories);
        search::check_proposals(basis, histories);
        for (const search::History& history : histories)
            for (const search::Trial& trial : history.trials())
                check_draws(basis, limits, history, histories, trial.proposed);
    } catch (const Error& error) {
        report_line(error, histories, inspector);
        if (error.code() != ExitCode::mismatch) return {};
    }
    return histories;
}

void check_trials(const Claim& claim, const search::History& history, const GroupRecord& record,
                  const std::vector<StepRecord>& steps, Inspector& inspector) {
    const search::Basis basis = search_basis(claim.config);
    TrialsCheck(claim, basis, history, inspector).check(record, steps);
}

}  // namespace hpcai::verification
