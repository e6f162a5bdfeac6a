// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/all_reduce_schedule.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::prediction {

/// Returns the configured all-reduce options of the ranks of `group` with one slice of the model: a
/// stage and shard, numbered as Layout::shard_of(). `controller` has their nodes, which
/// communication.ranks_per_node replaces in the algorithm `hierarchical`. Throws Error(usage) when
/// communication.torus_columns does not divide the number of these ranks.
comm::AllReduceOptions all_reduce_options(const config::CommunicationConfig& communication,
                                          const plan::ParallelismController& controller, int group,
                                          int slice = 0);

}  // namespace hpcai::prediction
