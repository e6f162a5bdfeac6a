// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/gradient_buckets.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/comm/sync_batch_norm_group.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/group/model.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/training/snapshot.hpp>
#include <hpcai/training/step_runner.hpp>
#include <hpcai/training/trainer.hpp>

#include "epoch_source.hpp"
#include "group_checkpoints.hpp"

namespace hpcai::group {

/// The waits and messages of a rank in all steps of a training run.
struct TrainingCosts {
    double input_wait_seconds = 0;
    double checkpoint_seconds = 0;             // delay of steps by checkpoints
    comm::BucketAccounting all_reduces;        // of gradients
    comm::SyncBatchNormAccounting statistics;  // all-reduces of BatchNorm statistics
    std::optional<comm::SentBytes> sent;  // for gradients; absent: a library does not report them
    training::MessageAccounting messages;

    /// Adds the costs of an earlier launch's steps.
    void add(const TrainingCosts& earlier);
    void save(training::Snapshot& to) const;
    /// Throws Error(data) naming the array that does not fit.
    static TrainingCosts from_snapshot(const training::Snapshot& from);
};

/// Returns the largest value of all ranks. Collective.
std::int64_t max_over_ranks(comm::Communicator& group, std::int64_t value);

/// What record_costs() needs besides the costs of this rank.
struct CostSources {
    const context::RunContext& context;
    comm::Communicator& group;
    comm::Communicator& replicas;  // the ranks with the same stage and shard
    comm::GradientReducer& reducer;
    std::int64_t buckets = 0;
    std::int64_t gradient_bytes = 0;  // of this rank's stage and shard
};

/// Fills in waits, all-reduces and messages of `result` from each rank's `costs` of all steps.
/// `result` must have record.iterations, the number of steps. Returns the seconds per step in which
/// this rank's all-reduces overlapped with computation. Collective in the group.
Quantity record_costs(const CostSources& sources, const TrainingCosts& costs, GroupResult& result);

/// The part of a group's record that grows during training, over all launches. Every rank has an
/// object.
class ResumableRecord {
public:
    /// What trains the only model of a group.
    struct Sources {
        Model& model;
        comm::GradientReducer& reducer;
        const training::Trainer& trainer;
        const GroupCheckpoints& checkpoints;
    };
    /// All arguments outlive the object.
    ResumableRecord(EpochSource& source, GroupRecord& record) : source_(source), record_(record) {}

    /// Sets the objects whose costs costs() returns. The objects must outlive this one. An
    /// architecture search uses add() instead.
    void watch(const Sources& sources) { sources_.emplace(sources); }
    /// The costs of this launch's model, if watch() was called, and all added costs.
    TrainingCosts costs() const;
    /// Adds the costs of a model that has been trained.
    void add(const TrainingCosts& costs);
    /// Returns the functions that save and restore this object. It must outlive them.
    ExtraState content();

private:
    void save(training::Snapshot& to) const;
    void restore(const training::Snapshot& from);

    EpochSource& source_;
    GroupRecord& record_;
    std::optional<Sources> sources_;  // absent in an architecture search and before watch()
    TrainingCosts earlier_costs_;     // of earlier launches, and those that add() added
};

}  // namespace hpcai::group
