// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::data::staging {

/// The position of a rank among those of its node.
struct NodePlace {
    int node = 0;
    int node_rank = 0;
    std::vector<plan::RankPlace> ranks;  // all of the node, including this one
};

NodePlace place_on_node(const plan::ParallelismController& controller, int world_rank);

/// Returns, by sample, 1 if a rank of the node reads it and data.staging stages it. For training
/// these are the whole bootstraps of the groups with a reading rank on the node, because each epoch
/// distributes a bootstrap over the ranks again. Only ranks with the first shard of the first
/// pipeline stage read. For evaluation (test and out-of-bag samples) these are the shares of the
/// ranks of the node.
std::vector<std::uint8_t> needed_samples(const config::Config& config, Split split,
                                         std::uint32_t samples, const NodePlace& place,
                                         const plan::Layout& layout);

}  // namespace hpcai::data::staging
