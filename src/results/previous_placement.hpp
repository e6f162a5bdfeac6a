// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

/// The placement of groups that an earlier launch of a run completed.
namespace hpcai::results {

/// The nodes and hosts of all ranks in the launch that ends the run.
struct NodesOfRanks {
    std::vector<int> nodes;          // [world_rank]
    std::vector<std::string> hosts;  // [world_rank]
};

/// Returns the nodes of the ranks, by world rank, if they are on `hosts`. A rank that has not moved
/// keeps its node of `now`, as does one whose host's name several nodes of `now` have. Any other
/// rank gets the node of `now` with its host's name; without one, its host gets an unused number.
std::vector<int> nodes_of_hosts(const NodesOfRanks& now, const std::vector<std::string>& hosts);

/// Returns the groups of `now` with their ranks on `nodes`, or `now` if that would change a group.
plan::ParallelismController controller_for_nodes(const config::Config& config,
                                                 const plan::ParallelismController& now,
                                                 const std::vector<int>& nodes);

}  // namespace hpcai::results
