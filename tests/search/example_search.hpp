// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <hpcai/base/philox.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/search/proposal.hpp>
#include <hpcai/storage/sha256.hpp>

#include "models/networks.hpp"

/// A search without training: accuracies are random.
namespace hpcai::search {

inline graph::Graph example_root() {
    models::ResNet50 options;
    options.batch = 2;
    options.image_size = 64;
    options.classes = 5;
    options.backbone = {.width = 8, .blocks = {1, 1, 1, 1}};
    return make_resnet50(options);
}

inline Basis example_basis(ParentRule parent, std::uint64_t seed = 1) {
    Settings settings;
    settings.parent = parent;
    settings.dimensions = {{"rate_factor", 0.5, 2, true, {}, 1},
                           {"filters", 0, 0, false, {8, 16, 32}, 16}};
    return {settings, seed, example_root()};
}

/// Appends the records as lines of a file, each with the hash of the one before.
class Chain {
public:
    explicit Chain(int group) : history_(group, "trials.jsonl") {}
    template <typename Record>
    void add(Record record) {
        record.previous = history_.last_sha256();
        lines_.push_back(records::to_json_line(record));
        history_.add_line(lines_.back());
    }
    const History& history() const { return history_; }
    const std::vector<std::string>& lines() const { return lines_; }

private:
    History history_;
    std::vector<std::string> lines_;
};

inline FinishedTrial finished_trial(int sequence, double accuracy) {
    FinishedTrial trial;
    trial.sequence = sequence;
    trial.accuracy = {accuracy / 2, accuracy};
    trial.epoch_seconds = {sequence + 0.5, sequence + 1.0};
    trial.begin_seconds = sequence;
    trial.end_seconds = sequence + 1;
    trial.digest = std::string(64, 'd');
    return trial;
}

/// Like TrialProposals::fail().
inline FinishedTrial failed_trial(int sequence) {
    FinishedTrial trial;
    trial.sequence = sequence;
    trial.state = TrialState::failed;
    trial.reason = "training diverged";
    return trial;
}

/// A trial that is a child of the root and depends on its own group's lines only.
inline ProposedTrial proposed_trial(int group, int sequence, std::size_t groups = 2) {
    ProposedTrial trial;
    trial.sequence = sequence;
    trial.seen.resize(groups);
    trial.seen[static_cast<std::size_t>(group)] = 2 * sequence;
    return trial;
}

inline std::vector<std::int64_t> lines_of(const std::vector<History>& histories) {
    std::vector<std::int64_t> lines;
    for (const History& history : histories) lines.push_back(history.lines());
    return lines;
}

/// Runs `lines` lines of a search of `groups` groups, whose order is random. Every seventh trial
/// fails.
inline std::vector<History> example_search(const Basis& basis, int groups, int lines) {
    CounterStream draws(basis.seed, RandomPurpose::test, 1);
    std::vector<History> histories;
    for (int group = 0; group < groups; ++group) histories.emplace_back(group, "trials.jsonl");
    for (int line = 0; line < lines; ++line) {
        const auto group = draws.below(static_cast<std::uint32_t>(groups));
        History& history = histories[group];
        const auto sequence = static_cast<int>(history.lines() / 2);
        if (history.lines() % 2 == 0) {
            ProposedTrial trial = propose(
                basis, {static_cast<int>(group), sequence, 0, {}, lines_of(histories)}, histories);
            trial.previous = history.last_sha256();
            history.add_line(records::to_json_line(trial));
            continue;
        }
        const double accuracy = draws.uniform();
        FinishedTrial trial =
            line % 7 == 6 ? failed_trial(sequence) : finished_trial(sequence, accuracy);
        trial.previous = history.last_sha256();
        history.add_line(records::to_json_line(trial));
    }
    return histories;
}

}  // namespace hpcai::search
