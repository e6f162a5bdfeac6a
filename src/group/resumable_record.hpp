// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/group/model.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/training/trainer.hpp>

#include "epoch_source.hpp"
#include "group_checkpoints.hpp"
#include "training_costs.hpp"

namespace hpcai::group {

/// The part of a group's record that grows during training, over all launches. Every rank has an
/// object.
class ResumableRecord {
public:
    struct Sources {
        Model& model;
        comm::GradientReducer& reducer;
        EpochSource& source;
    };
    /// All arguments outlive the object.
    ResumableRecord(const Sources& sources, GroupRecord& record)
        : sources_(sources), record_(record) {}

    /// Sets the objects whose costs costs() returns. Call it before costs() and any checkpoint.
    void watch(const training::Trainer& trainer, const GroupCheckpoints& checkpoints) {
        trainer_ = &trainer;
        checkpoints_ = &checkpoints;
    }
    /// Adds a resumption to the record.
    void add_continuation(const ContinuationRecord& continuation) {
        record_.continuations.push_back(continuation);
    }
    /// Returns the costs of all steps.
    TrainingCosts costs() const;
    /// Returns the functions that save and restore this object. It must outlive them.
    ExtraState content();

private:
    void save(training::Snapshot& to) const;
    void restore(const training::Snapshot& from);

    Sources sources_;
    GroupRecord& record_;
    const training::Trainer* trainer_ = nullptr;
    const GroupCheckpoints* checkpoints_ = nullptr;
    TrainingCosts earlier_costs_;  // of earlier launches
};

}  // namespace hpcai::group
