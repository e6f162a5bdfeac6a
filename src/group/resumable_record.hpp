// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/run_record.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/group/model.hpp>
#include <hpcai/training/trainer.hpp>

#include "epoch_source.hpp"
#include "group_checkpoints.hpp"
#include "training_costs.hpp"

namespace hpcai::group {

/// What becomes part of a group's record while it trains, over the programs that train it; one on
/// each rank.
class ResumableRecord {
public:
    struct Sources {
        Model& model;
        comm::GradientReducer& reducer;
        EpochSource& source;
    };
    /// What is given outlives it.
    ResumableRecord(const Sources& sources, GroupRecord& record)
        : sources_(sources), record_(record) {}

    /// Before costs() and any checkpoint.
    void watch(const training::Trainer& trainer) { trainer_ = &trainer; }
    /// The record has it from now on.
    void add_continuation(const ContinuationRecord& continuation) {
        record_.continuations.push_back(continuation);
    }
    /// Of all steps.
    TrainingCosts costs() const;
    /// `this` outlives it.
    CheckpointContent content();

private:
    void save(training::Snapshot& to) const;
    void restore(const training::Snapshot& from);

    Sources sources_;
    GroupRecord& record_;
    const training::Trainer* trainer_ = nullptr;
    TrainingCosts before_;  // of steps that other programs took
};

}  // namespace hpcai::group
