// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <hpcai/base/error.hpp>
#include <hpcai/search/history.hpp>

namespace hpcai::search {
namespace {

/// Checks one proposal against the histories of all groups.
class ProposalCheck {
public:
    ProposalCheck(std::span<const History> histories, std::size_t group, const Trial& trial)
        : histories_(histories),
          proposed_(trial.proposed),
          at_(fmt::format("{}, line {}", histories[group].name(),
                          2 * std::int64_t{trial.proposed.sequence} + 1)) {}

    void check_seen() const {
        require(proposed_.seen.size() == histories_.size(), ExitCode::data,
                "{}: seen: expected {} numbers, got {}", at_, histories_.size(),
                proposed_.seen.size());
        for (std::size_t other = 0; other < histories_.size(); ++other) {
            const std::int64_t seen = proposed_.seen[other];
            const std::int64_t lines = histories_[other].lines();
            require(seen <= lines, ExitCode::data, "{}: seen[{}]: expected at most {}, got {}", at_,
                    other, lines, seen);
        }
    }

    void check_parent() const {
        const TrialId parent = proposed_.parent;
        if (parent.is_root()) return;
        require(has_seen_end(parent), ExitCode::data,
                "{}: parent: trial {} of group {} had not finished", at_, parent.sequence,
                parent.group);
        const Trial& trial = histories_[static_cast<std::size_t>(parent.group)]
                                 .trials()[static_cast<std::size_t>(parent.sequence)];
        require(trial.accuracy().has_value(), ExitCode::data,
                "{}: parent: trial {} of group {} has failed", at_, parent.sequence, parent.group);
        const auto& inherited = trial.proposed.edits;
        const bool extends =
            inherited.size() <= proposed_.edits.size() &&
            std::equal(inherited.begin(), inherited.end(), proposed_.edits.begin());
        require(extends, ExitCode::data, "{}: edits: expected those of the parent first", at_);
    }

    /// Checks that trials whose weights were gone had finished in the lines seen.
    void check_missing() const {
        std::set<TrialId> before;
        for (const TrialId& id : proposed_.missing) {
            require(has_seen_end(id) && before.insert(id).second, ExitCode::data,
                    "{}: missing: expected different trials that had finished, got trial {} of "
                    "group {}",
                    at_, id.sequence, id.group);
        }
    }

private:
    bool has_seen_end(const TrialId& id) const {
        const auto other = static_cast<std::size_t>(id.group);
        return other < histories_.size() &&
               2 * std::int64_t{id.sequence} + 2 <= proposed_.seen[other];
    }

    std::span<const History> histories_;
    const ProposedTrial& proposed_;
    std::string at_;
};

/// Replays the lines of all groups in an order in which a proposal comes after what it has seen.
class Replay {
public:
    explicit Replay(std::span<const History> histories)
        : histories_(histories), cursors_(histories.size()), waiting_(histories.size()) {}

    /// Throws Error(data) if there is no such order.
    void check() {
        for (std::size_t group = 0; group < cursors_.size(); ++group) ready_.push_back(group);
        while (!ready_.empty()) {
            const std::size_t group = ready_.back();
            ready_.pop_back();
            advance(group);
        }
        for (std::size_t group = 0; group < cursors_.size(); ++group) {
            const Cursor& cursor = cursors_[group];
            require(cursor.trials == histories_[group].trials().size(), ExitCode::data,
                    "{}, line {}: seen[{}]: these lines include one that depends on this one",
                    histories_[group].name(), 2 * cursor.trials + 1, cursor.other);
        }
    }

private:
    struct Cursor {
        std::size_t trials = 0;  // replayed
        std::size_t other = 0;   // of the next trial, seen[other] is checked next
    };

    /// Replays trials of the group until one needs more trials of another group.
    void advance(std::size_t group) {
        Cursor& cursor = cursors_[group];
        const std::vector<Trial>& trials = histories_[group].trials();
        while (cursor.trials < trials.size()) {
            const std::vector<std::int64_t>& seen = trials[cursor.trials].proposed.seen;
            for (; cursor.other < seen.size(); ++cursor.other) {
                const auto needed = static_cast<std::size_t>((seen[cursor.other] + 1) / 2);
                if (needed <= cursors_[cursor.other].trials) continue;
                waiting_[cursor.other].emplace(needed, group);
                return;
            }
            cursor = {cursor.trials + 1, 0};
            wake(group);
        }
    }

    void wake(std::size_t group) {
        auto& waiting = waiting_[group];
        while (!waiting.empty() && waiting.begin()->first <= cursors_[group].trials) {
            ready_.push_back(waiting.begin()->second);
            waiting.erase(waiting.begin());
        }
    }

    std::span<const History> histories_;
    std::vector<Cursor> cursors_;  // of the groups
    // [group]: the numbers of its trials that other groups need, with these groups
    std::vector<std::set<std::pair<std::size_t, std::size_t>>> waiting_;
    std::vector<std::size_t> ready_;
};

}  // namespace

void check_histories(std::span<const History> histories) {
    for (std::size_t group = 0; group < histories.size(); ++group) {
        ensure(std::cmp_equal(histories[group].group(), group), "history {} is that of group {}",
               group, histories[group].group());
        for (const Trial& trial : histories[group].trials()) {
            const ProposalCheck check(histories, group, trial);
            check.check_seen();
            check.check_parent();
            check.check_missing();
        }
    }
    Replay(histories).check();
}

}  // namespace hpcai::search
