// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/base/run_record.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/context/run_context.hpp>

#include "step_times.hpp"
#include "training_costs.hpp"

namespace hpcai::group {

/// Collective.
std::int64_t largest_of_ranks(comm::Communicator& group, std::int64_t value);

/// Whose costs they are.
struct CostsOf {
    const context::RunContext& context;
    comm::Communicator& group;
    comm::Communicator& replicas;  // the ranks of this one's slice
    comm::GradientReducer& reducer;
    std::int64_t buckets = 0;
    std::int64_t gradient_bytes = 0;  // of this rank's slice
};

/// What the record has of waits, sums and messages, from what each rank's `costs` were in all of
/// result.record.iterations steps. Returns hidden_seconds_per_step() of this rank. Collective in
/// the group.
Quantity record_costs(const CostsOf& of, const TrainingCosts& costs, GroupResult& result);

}  // namespace hpcai::group
