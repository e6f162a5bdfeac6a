// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/gradient_buckets.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/comm/sync_batch_norm_group.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/training/snapshot.hpp>
#include <hpcai/training/step_runner.hpp>

namespace hpcai::group {

/// The waits and messages of a rank in all steps of a training run.
struct TrainingCosts {
    double input_wait_seconds = 0;
    double checkpoint_seconds = 0;  // delay of steps by checkpoints
    comm::BucketAccounting sums;
    comm::SyncBatchNormAccounting statistics;
    std::optional<comm::SentBytes> gradients;  // sent in all-reduces; empty: unknown, as with NCCL
    training::MessageAccounting messages;

    /// Adds the costs of an earlier launch's steps.
    void add(const TrainingCosts& earlier);
    void save(training::Snapshot& to) const;
    /// Throws Error(data) naming the array that does not fit.
    static TrainingCosts from_snapshot(const training::Snapshot& from);
};

/// Returns the largest value of all ranks. Collective.
std::int64_t max_over_ranks(comm::Communicator& group, std::int64_t value);

/// The rank whose costs record_costs() records, and its communicators.
struct CostSources {
    const context::RunContext& context;
    comm::Communicator& group;
    comm::Communicator& replicas;  // the ranks with the same stage and shard
    comm::GradientReducer& reducer;
    std::int64_t buckets = 0;
    std::int64_t gradient_bytes = 0;  // of this rank's stage and shard
};

/// Fills in waits, all-reduces and messages of `result` from each rank's `costs` of all steps.
/// `result` must have record.iterations, the number of steps. Returns overlapped_seconds_per_step()
/// of this rank. Collective in the group.
Quantity record_costs(const CostSources& sources, const TrainingCosts& costs, GroupResult& result);

}  // namespace hpcai::group
