// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::data::staging {

/// Where a rank stands among those of its node.
struct NodePlace {
    int node = 0;
    int node_rank = 0;
    std::vector<plan::RankPlace> ranks;  // of the node, this one among them
};

NodePlace place_on_node(const plan::ParallelismController& controller, int world_rank);

/// [sample] 1: some rank of the node reads it and data.staging stages it. Training samples are
/// those in the bootstrap of any group of which a rank on the node reads any (in a pipeline those
/// of the first stage do, with parts of layers those of the first), since each epoch deals them to
/// these ranks anew; samples to be evaluated are those of the ranks' own shares.
std::vector<std::uint8_t> needed_samples(const config::Config& config, Split split,
                                         std::uint32_t samples, const NodePlace& place,
                                         const plan::Layout& layout);

}  // namespace hpcai::data::staging
