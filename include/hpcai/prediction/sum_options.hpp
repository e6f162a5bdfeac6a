// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/comm/sum_program.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::prediction {

/// How a group sums its gradients, by `communication`; the nodes of its ranks are those of
/// `controller` unless communication.ranks_per_node says otherwise. Throws Error(usage) when
/// communication.torus_columns does not divide the group's ranks.
comm::SumOptions sum_options(const config::CommunicationConfig& communication,
                             const plan::ParallelismController& controller, int group);

}  // namespace hpcai::prediction
