// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/records/trial_record.hpp>

/// The numbers of an architecture search that follow from the histories of its groups.
namespace hpcai {

/// Seconds of a group or of all groups by kind of work.
struct SearchSeconds {
    double proposing = 0;
    double building = 0;
    double training = 0;
    double evaluating = 0;
    double other = 0;  // storing weights and history, and waits between trials
    HPCAI_RECORD(SearchSeconds, proposing, building, training, evaluating, other);
};

/// The search of one group.
struct GroupSearchRecord {
    int trials = 0;                 // that have completed
    int best = 0;                   // sequence of the trial whose model votes
    double best_accuracy = 0;       // of that trial after its last epoch, on the hold-out
    int best_epochs = 0;            // of that trial
    std::vector<EditRecord> edits;  // of that trial, from the root
    double work = 0;                // FLOPs of the ledger aiperf in training and evaluation
    double training_flops = 0;      // FLOPs of the scores' ledger in training
    double seconds = 0;             // from the end of start-up to the end of the last epoch
    SearchSeconds spent;
    std::string history_sha256;  // of the last line of trials.jsonl
    std::string end_reason;      // why it ended early; empty if it did not
    HPCAI_RECORD(GroupSearchRecord, trials, best, best_accuracy, best_epochs, edits, work,
                 training_flops, seconds, spent, history_sha256, end_reason);
};

/// The state of a search after some time.
struct SearchPoint {
    double seconds = 0;
    int trials = 0;  // that had completed
    double ops = 0;  // this and the members below: as in SearchRecord
    double regulated = 0;
    double best_accuracy = 0;
    HPCAI_RECORD(SearchPoint, seconds, trials, ops, regulated, best_accuracy);
};

/// One trial in the family tree of a search.
struct FamilyRecord {
    TrialId id;
    TrialId parent;
    std::string edit;  // kind of the last edit; empty for the root
    double accuracy = 0;
    double begin_seconds = 0;
    double end_seconds = 0;
    HPCAI_RECORD(FamilyRecord, id, parent, edit, accuracy, begin_seconds, end_seconds);
};

/// The search of a run, over its finished groups.
struct SearchRecord {
    int trials = 0;
    std::int64_t hold_out_samples = 0;
    double seconds = 0;        // of the longest group
    double work = 0;           // FLOPs, as in GroupSearchRecord
    double ops = 0;            // work / seconds
    double regulated = 0;      // ops x -ln(error of the best trial)
    double best_accuracy = 0;  // largest of the trials' accuracies after their last epochs
    TrialId best;
    double stability = 0;  // largest |ops - final ops| / final ops in the second half of `curve`
    SearchSeconds spent;   // of all groups
    std::vector<SearchPoint> curve;
    std::vector<FamilyRecord> family;     // ordered by sequence, then group
    std::vector<std::string> early_ends;  // "group <m>: " and its end_reason, unless empty
    HPCAI_RECORD(SearchRecord, trials, hold_out_samples, seconds, work, ops, regulated,
                 best_accuracy, best, stability, spent, curve, family, early_ends);
};

}  // namespace hpcai
