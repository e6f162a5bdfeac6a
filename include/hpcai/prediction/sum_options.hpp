// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/comm/sum_program.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::prediction {

/// How the ranks of one stage of a group sum their gradients, by `communication`; the nodes of its
/// ranks are those of `controller` unless communication.ranks_per_node says otherwise. Throws
/// Error(usage) when communication.torus_columns does not divide these ranks.
comm::SumOptions sum_options(const config::CommunicationConfig& communication,
                             const plan::ParallelismController& controller, int group,
                             int stage = 0);

}  // namespace hpcai::prediction
