// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/records/run_record.hpp>

/// The placement of groups that an earlier launch of a run completed.
namespace hpcai::results {

/// Returns the node numbers of ranks that were on `hosts`; all lists are by world rank. `current`
/// has the ranks' places in this launch, which ends the run. A rank keeps its current node if its
/// host has not changed or if several current nodes have the old host's name. Any other rank gets
/// the only current node with the old host's name or, without one, an unused number for that host.
std::vector<int> nodes_of_hosts(const std::vector<PlaceRecord>& current,
                                const std::vector<std::string>& hosts);

/// Returns `current` with its ranks on `nodes`; unchanged if these allow no layout of its groups.
plan::ParallelismController controller_for_nodes(const config::Config& config,
                                                 const plan::ParallelismController& current,
                                                 const std::vector<int>& nodes);

}  // namespace hpcai::results
