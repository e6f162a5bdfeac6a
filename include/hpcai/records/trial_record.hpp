// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include <hpcai/records/record_fields.hpp>

/// The trials of an architecture search. A group appends a line to `groups/<m>/trials.jsonl` when
/// it proposes a trial, and another when the trial has finished.
namespace hpcai {

inline constexpr const char* kTrialsName = "trials.jsonl";

/// Largest number of refused proposals of one trial.
inline constexpr int kMaxRefusedDraws = 100;

/// Identifies a trial. The root of the search, which is not a trial, has group and sequence -1.
struct TrialId {
    int group = -1;
    int sequence = -1;  // number of the trial in its group, from 0

    constexpr bool is_root() const { return group < 0; }
    constexpr auto operator<=>(const TrialId&) const = default;
    HPCAI_RECORD(TrialId, group, sequence);
};

/// One edit of the root's graph; the fields are those of morphs::Morph.
struct EditRecord {
    std::string kind;
    std::string node;
    std::string end;
    std::int64_t amount = 0;
    HPCAI_RECORD(EditRecord, kind, node, end, amount);
};

struct HyperParameter {
    std::string name;
    double value = 0;
    HPCAI_RECORD(HyperParameter, name, value);
};

/// A line that proposes a trial. The numbers of a group's trials are consecutive from 0, and a
/// trial is proposed after the previous one has finished.
struct ProposedTrial {
    std::string schema = "hpcai500-trial-proposed/1";
    // SHA-256 of the line before without its line feed; in the first line, 64 zeros
    std::string previous;
    int sequence = 0;
    TrialId parent;                                // whose weights the trial inherits
    std::vector<EditRecord> edits;                 // from the root; begin with those of the parent
    std::vector<HyperParameter> hyper_parameters;  // in the order of the search's dimensions
    int draw = 0;                                  // number of refused proposals before this one
    std::vector<TrialId> missing;    // trials that could not be a parent: their weights are gone
    std::vector<std::int64_t> seen;  // [group] number of lines that the proposal depends on
    std::int64_t memory_bytes = 0;   // limit of a rank; proposals that need more are refused
    HPCAI_RECORD(ProposedTrial, schema, previous, sequence, parent, edits, hyper_parameters, draw,
                 missing, seen, memory_bytes);
};

enum class TrialState { completed, failed };

constexpr std::array<Word<TrialState>, 2> words_of(TrialState /*state*/) {
    return {{{TrialState::completed, "completed"}, {TrialState::failed, "failed"}}};
}

/// FLOPs of one sample by the rules of a ledger.
struct SampleFlops {
    std::string ledger;  // "table3", "two_mac", "aiperf"
    std::int64_t training = 0;
    std::int64_t evaluation = 0;
    HPCAI_RECORD(SampleFlops, ledger, training, evaluation);
};

/// A line that ends a trial. Times are on the group's clock, from the end of start-up. A failed
/// trial has a reason, but no epochs: its samples count as no work.
struct FinishedTrial {
    std::string schema = "hpcai500-trial-finished/1";
    std::string previous;  // as in ProposedTrial
    int sequence = 0;
    TrialState state = TrialState::completed;
    std::string reason;                 // why it failed
    std::vector<double> accuracy;       // on the hold-out after each epoch, 0 to 1
    std::vector<double> epoch_seconds;  // end of each epoch's evaluation
    double begin_seconds = 0;
    double end_seconds = 0;
    double proposing_seconds = 0;
    double building_seconds = 0;
    double training_seconds = 0;
    double evaluating_seconds = 0;
    std::int64_t samples_trained = 0;
    std::int64_t samples_evaluated = 0;
    std::vector<SampleFlops> flops;
    std::string digest;  // of the trained parameters: 64 hexadecimal digits; empty if it failed
    HPCAI_RECORD(FinishedTrial, schema, previous, sequence, state, reason, accuracy, epoch_seconds,
                 begin_seconds, end_seconds, proposing_seconds, building_seconds, training_seconds,
                 evaluating_seconds, samples_trained, samples_evaluated, flops, digest);
};

}  // namespace hpcai
