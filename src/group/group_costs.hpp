// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/records/run_record.hpp>

#include "step_times.hpp"
#include "training_costs.hpp"

namespace hpcai::group {

/// Returns the largest value of all ranks. Collective.
std::int64_t largest_of_ranks(comm::Communicator& group, std::int64_t value);

/// The rank whose costs are recorded, and its communicators.
struct CostsOf {
    const context::RunContext& context;
    comm::Communicator& group;
    comm::Communicator& replicas;  // the ranks with the same shard
    comm::GradientReducer& reducer;
    std::int64_t buckets = 0;
    std::int64_t gradient_bytes = 0;  // of this rank's shard
};

/// Fills in the waits, sums and messages of `result` from each rank's `costs` in all
/// result.record.iterations steps. Returns overlapped_seconds_per_step() of this rank. Collective
/// in the group.
Quantity record_costs(const CostsOf& of, const TrainingCosts& costs, GroupResult& result);

}  // namespace hpcai::group
