// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include <hpcai/base/error.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/search/history.hpp>
#include <hpcai/storage/sha256.hpp>

namespace hpcai::search {
namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{4} << 20;

/// Parses a line and checks that it is exactly as the program writes it.
template <typename Record>
Record record_of(std::string_view line, std::string_view at) {
    Record record = records::from_json<Record>(line, at);
    require(records::to_json_line(record) == line, ExitCode::data,
            "{}: is not as the program writes it", at);
    return record;
}

/// Checks the values that the earlier lines of the same file determine.
void check_order(const std::string& previous, int sequence, const History& history,
                 std::string_view at) {
    require(previous == history.last_sha256(), ExitCode::data,
            "{}: 'previous' is not the SHA-256 of the line before", at);
    const std::size_t expected =
        history.trials().size() - static_cast<std::size_t>(history.lines() % 2);
    require(std::cmp_equal(sequence, expected), ExitCode::data, "{}: sequence: expected {}, got {}",
            at, expected, sequence);
}

void check_seen(const ProposedTrial& trial, const History& history, std::string_view at) {
    const auto own = static_cast<std::size_t>(history.group());
    require(own < trial.seen.size() && trial.seen[own] == history.lines(), ExitCode::data,
            "{}: seen[{}]: expected the {} lines of the file before", at, own, history.lines());
    if (history.trials().empty()) return;
    const std::vector<std::int64_t>& before = history.trials().back().proposed.seen;
    require(before.size() == trial.seen.size(), ExitCode::data,
            "{}: seen: expected {} numbers, got {}", at, before.size(), trial.seen.size());
    for (std::size_t group = 0; group < before.size(); ++group) {
        require(trial.seen[group] >= before[group], ExitCode::data,
                "{}: seen[{}]: expected at least {}, as in the trial before, got {}", at, group,
                before[group], trial.seen[group]);
    }
}

}  // namespace

std::optional<double> Trial::accuracy() const {
    if (!finished || finished->state != TrialState::completed) return std::nullopt;
    return finished->accuracy.back();
}

History::History(int group, std::string name)
    : group_(group), name_(std::move(name)), last_sha256_(64, '0') {}

void History::add_line(std::string_view line) {
    const std::string at = fmt::format("{}, line {}", name_, lines_ + 1);
    require(line.size() <= kMaxLineBytes, ExitCode::data, "{}: has {} bytes; the limit is {}", at,
            line.size(), kMaxLineBytes);
    if (lines_ % 2 == 0) {
        add(record_of<ProposedTrial>(line, at), at);
    } else {
        add(record_of<FinishedTrial>(line, at), at);
    }
    ++lines_;
    last_sha256_ = storage::sha256_hex(storage::bytes_of(line));
}

void History::add(ProposedTrial proposed, std::string_view at) {
    check_order(proposed.previous, proposed.sequence, *this, at);
    check_seen(proposed, *this, at);
    trials_.push_back({std::move(proposed), std::nullopt});
}

void History::add(FinishedTrial finished, std::string_view at) {
    check_order(finished.previous, finished.sequence, *this, at);
    trials_.back().finished = std::move(finished);
}

std::vector<const History*> pointers_to(std::span<const History> histories) {
    std::vector<const History*> pointers;
    for (const History& history : histories) pointers.push_back(&history);
    return pointers;
}

Progress progress(const History& history, std::int64_t dropped) {
    const auto is_completed = [](const Trial& trial) { return trial.accuracy().has_value(); };
    const std::int64_t wanted = std::ranges::count_if(history.trials(), is_completed) - dropped;
    Progress progress;
    for (const Trial& trial : history.trials()) {
        if (!trial.finished) continue;
        if (is_completed(trial) && progress.trials == wanted) break;
        progress.end_seconds = trial.finished->end_seconds;
        if (!is_completed(trial)) continue;
        ++progress.trials;
        progress.epochs += std::ssize(trial.finished->accuracy);
    }
    return progress;
}

std::vector<SeenTrial> seen_trials(std::span<const History* const> histories,
                                   std::span<const std::int64_t> seen) {
    ensure(seen.size() == histories.size(), "{} numbers of lines for {} histories", seen.size(),
           histories.size());
    std::vector<SeenTrial> trials;
    for (std::size_t group = 0; group < histories.size(); ++group) {
        const History& history = *histories[group];
        ensure(seen[group] >= 0 && seen[group] <= history.lines(), "{} lines of {} in {}",
               seen[group], history.lines(), history.name());
        for (std::int64_t line = 0; line < seen[group]; line += 2) {
            const Trial& trial = history.trials()[static_cast<std::size_t>(line / 2)];
            const bool is_running = line + 1 == seen[group];
            trials.push_back({{static_cast<int>(group), trial.proposed.sequence},
                              &trial,
                              is_running ? std::nullopt : trial.accuracy(),
                              is_running});
        }
    }
    std::ranges::sort(trials, {}, [](const SeenTrial& trial) {
        return std::pair(trial.id.sequence, trial.id.group);
    });
    return trials;
}

}  // namespace hpcai::search
