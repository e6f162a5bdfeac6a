// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/all_reduce_schedule.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::prediction {

/// Returns the configured all-reduce options of those ranks of `group` whose stage and shard have
/// the number `partition` (Layout::partition_of()). `controller` provides the nodes of the ranks;
/// the algorithm `hierarchical` ignores nodes if communication.ranks_per_node is set. Throws
/// Error(usage) if communication.torus_columns does not divide the number of ranks.
comm::AllReduceOptions all_reduce_options(const config::CommunicationConfig& communication,
                                          const plan::ParallelismController& controller, int group,
                                          int partition = 0);

}  // namespace hpcai::prediction
