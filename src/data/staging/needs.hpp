// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::data::staging {

/// The position of a rank among the ranks of its node.
struct NodePlace {
    int node = 0;
    int node_rank = 0;
    std::vector<plan::RankPlace> ranks;  // all ranks of the node, including this one
};

NodePlace place_on_node(const plan::ParallelismController& controller, int world_rank);

/// Returns, for each sample, 1 if a rank of the node reads it and data.staging covers it. In
/// training, only ranks with the first shard of the first pipeline stage read. A node with such a
/// rank needs the group's whole bootstrap sample, because each epoch distributes it over the ranks
/// again. In evaluation (test and out-of-bag samples), the node needs the shares of its ranks.
std::vector<std::uint8_t> needed_samples(const config::Config& config, Split split,
                                         std::uint32_t samples, const NodePlace& place,
                                         const plan::Layout& layout);

}  // namespace hpcai::data::staging
