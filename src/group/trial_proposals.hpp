// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hpcai/base/log.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/morphs/inherit.hpp>
#include <hpcai/search/proposal.hpp>
#include <hpcai/verification/search.hpp>

namespace hpcai::group {

/// A trial to train and the initial weights of its model.
struct PreparedTrial {
    ProposedTrial proposed;
    morphs::Weights weights;
};

/// Proposes the trials of a group and stores its history. Only the leader has an object.
class TrialProposals {
public:
    /// Reads the history that an earlier launch has stored. `memory_bytes` is that of the group's
    /// rank with the least, `precision` the resolved one. Throws as search::HistoryWriter, and
    /// Error(data) if search.recorded cannot be read. References outlive the object. next() calls
    /// `may_wait` about 50 times a second while it waits for another group.
    TrialProposals(
        const context::RunContext& context, Logger& log, std::int64_t memory_bytes,
        std::string_view precision, std::function<bool()> may_wait = [] { return true; });

    /// Whether the search of the group is over, for one of these reasons: search.trials trials have
    /// completed; the last trial ended after search.duration_seconds; verification::end_reason()
    /// has a reason; the replayed search (search.history recorded) has no more trials; the epochs
    /// of another trial would exceed config::kMaxSearchEpochs.
    bool is_over() const;

    /// Proposes the next trial, or the one that an earlier launch has not finished, stores the
    /// proposal and inherits the weights. The unfinished one fails, and another trial follows, if
    /// its parent has no weights any more, or if it has ended the group twice. Reads what other
    /// groups have stored so far; with search.history recorded, waits for what the replayed search
    /// had seen. Returns nothing if `may_wait` returns false, or if the search is over because the
    /// unfinished trial has failed. Throws the errors of search::propose. Throws Error(data) if
    /// another group stores impossible lines, or if it stores too few lines and has not been active
    /// for run.group_timeout_seconds.
    std::optional<PreparedTrial> next();
    /// Resets the count of attempts. Call it if the trial of next() did not end this launch.
    void forget_attempts();
    /// Stores the result of the trial of next().
    void finish(FinishedTrial trial) { writer_.append(std::move(trial)); }
    /// Stores that the trial of next() failed `end_seconds` after the start of the search, or when
    /// the previous trial ended, if later. A failed trial has no accuracy, no weights and no work.
    void fail(std::string reason, double end_seconds);
    /// Removes the result of the last completed trial and all that follows: next() repeats it. No
    /// other group may use the history.
    void reopen_last_completed();
    /// Returns when the last trial ended; nothing without trials, or if it has not finished.
    std::optional<double> end_seconds() const;

    const search::History& own() const { return writer_.history(); }
    const graph::Graph& root() const { return basis_.root; }

private:
    /// The history of another group.
    struct Other {
        search::HistoryReader reader;
        std::size_t checked = 0;   // the first `checked` trials can be used
        bool is_damaged = false;   // whether the next trial is impossible
        bool is_reported = false;  // whether a failure to read the history was logged

        std::int64_t usable_lines() const;
    };

    class Interrupted {};

    std::optional<PreparedTrial> prepare();
    std::filesystem::path attempts_file() const;
    int attempts(int sequence) const;
    void begin_attempt(int sequence) const;
    void update(int group);
    void check_new_trials(Other& other) const;
    void await(int group, std::int64_t lines);
    search::Request request();
    std::optional<PreparedTrial> repeat();
    std::vector<const search::History*> histories() const;
    const std::vector<EditRecord>& edits_of(const TrialId& trial) const;
    std::optional<morphs::Weights> weights_of(const TrialId& trial);
    std::optional<PreparedTrial> inherit(ProposedTrial proposed);

    const context::RunContext& context_;
    Logger& log_;
    std::function<bool()> may_wait_;
    search::Basis basis_;
    verification::ProposalLimits limits_;
    std::int64_t memory_bytes_;  // recorded by new proposals, except in a replay
    search::HistoryWriter writer_;
    std::deque<Other> others_;             // [group]; that of the own group is not used
    std::vector<ProposedTrial> recorded_;  // finished trials of the group in the replayed search
};

}  // namespace hpcai::group
