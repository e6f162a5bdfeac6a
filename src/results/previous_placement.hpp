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

/// Returns the nodes of ranks, by world rank, that were on these `hosts` when their group trained.
/// A rank that has not moved keeps its node of `now`. Another rank gets the only node of `now` with
/// its host's name, or a number that no other host has.
std::vector<int> nodes_of_hosts(const NodesOfRanks& now, const std::vector<std::string>& hosts);

/// Returns the groups of `now` on such `nodes`; `now` itself if the nodes would change the groups.
plan::ParallelismController controller_on(const config::Config& config,
                                          const plan::ParallelismController& now,
                                          const std::vector<int>& nodes);

}  // namespace hpcai::results
