// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

/// Where ranks were of groups that an earlier program of a run has finished.
namespace hpcai::results {

/// Where the ranks of a run are by the program that ends it.
struct NodesOfRanks {
    std::vector<int> nodes;          // [world_rank]
    std::vector<std::string> hosts;  // [world_rank]
};

/// The nodes of ranks that were on these `hosts`, by world rank, when their group trained: of one
/// that is where it was that of `now`; of another the node of `now` that has its host's name, where
/// one has it alone, else a number that no other host has.
std::vector<int> nodes_of_hosts(const NodesOfRanks& now, const std::vector<std::string>& hosts);

/// The groups of `now` on such `nodes`; on its own where they would make other groups of the ranks.
plan::ParallelismController controller_on(const config::Config& config,
                                          const plan::ParallelismController& now,
                                          const std::vector<int>& nodes);

}  // namespace hpcai::results
