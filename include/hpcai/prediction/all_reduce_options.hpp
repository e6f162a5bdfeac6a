// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/comm/all_reduce_schedule.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::prediction {

/// How the ranks of one of a layout's slices of a group's model sum their gradients, by
/// `communication`; the nodes of these ranks are those of `controller` unless
/// communication.ranks_per_node says otherwise. Throws Error(usage) when
/// communication.torus_columns does not divide these ranks.
comm::AllReduceOptions all_reduce_options(const config::CommunicationConfig& communication,
                                          const plan::ParallelismController& controller, int group,
                                          int slice = 0);

}  // namespace hpcai::prediction
