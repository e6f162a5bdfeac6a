// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/all_reduce_schedule.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::prediction {

/// Returns the all-reduce options, by `communication`, of the ranks that hold one slice of the
/// model of `group`. Their nodes are those of `controller` unless communication.ranks_per_node is
/// set. Throws Error(usage) when communication.torus_columns does not divide the number of these
/// ranks.
comm::AllReduceOptions all_reduce_options(const config::CommunicationConfig& communication,
                                          const plan::ParallelismController& controller, int group,
                                          int slice = 0);

}  // namespace hpcai::prediction
