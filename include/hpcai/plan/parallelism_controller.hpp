// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <hpcai/config/config.hpp>

/// Who trains what, and on which samples: pure arithmetic, no MPI, any number of ranks.
namespace hpcai::plan {

/// Eq. 5 of the paper: ranks = groups x degree. Each group trains one base model.
struct Layout {
    int ranks = 1;          // Sys_scale
    int groups = 1;         // M
    int degree = 1;         // P_degree, ranks of one group
    int stages = 1;         // of a pipeline, contiguous ranks of a group each
    int micro_batches = 1;  // of one rank's share of a batch
    int parts = 1;          // of each stage, which share out the channels of its layers

    /// Replicas of each part of each stage, which share the samples of a batch.
    int data_degree() const { return degree / (stages * parts); }
    int stage_of(int group_rank) const { return group_rank / (data_degree() * parts); }
    int replica_of(int group_rank) const { return group_rank / parts % data_degree(); }
    int part_of(int group_rank) const { return group_rank % parts; }
    /// The parts of a replica follow one another, as they talk most, and then the replicas of a
    /// stage.
    int group_rank_of(int stage, int replica, int part = 0) const {
        return (stage * data_degree() + replica) * parts + part;
    }
    /// Of the model's parameters, which a rank shares with the other replicas only.
    int slice_of(int group_rank) const {
        return stage_of(group_rank) * parts + part_of(group_rank);
    }
    int slices() const { return stages * parts; }
    /// Samples that a rank computes at once.
    int rows(int batch_size) const { return batch_size / (data_degree() * micro_batches); }
};

/// The layout that `bagging` asks for on `ranks` ranks. What `bagging` leaves open follows from
/// eq. 5; when it leaves both open, P_degree is `ranks_per_node` (of the fullest node), or all
/// ranks when there are fewer.
/// Throws Error, naming the keys, what came and the nearest legal values, when eq. 5 cannot hold, a
/// batch cannot be shared evenly, the degrees of `parallel` do not make P_degree, or
/// training.batch_norm_samples is neither a part of what a rank computes at once nor that of ranks
/// whose number divides those that share a batch: Error(launch) where the number of ranks decides,
/// Error(usage) where P_degree or, of a batch, data_degree is configured.
Layout make_layout(const config::BaggingConfig& bagging, const config::TrainingConfig& training,
                   const config::ParallelConfig& parallel, int ranks, int ranks_per_node);

/// Consecutive replicas of a slice of `layout`, which make_layout() made of `training`, that take
/// their BatchNorm statistics together.
int statistics_ranks(const config::TrainingConfig& training, const Layout& layout);

/// Where one rank stands.
struct RankPlace {
    int world_rank = 0;  // as the launcher numbered it
    int group = 0;       // 0 to M - 1
    int group_rank = 0;  // 0 to P_degree - 1; 0 is the group's leader
    int node = 0;
    int node_rank = 0;  // among the ranks of its node, by world rank

    bool operator==(const RankPlace&) const = default;
};

/// A group's ranks on one node.
struct NodeShare {
    int node = 0;
    int ranks = 0;

    bool operator==(const NodeShare&) const = default;
};

/// What estimates of traffic and memory need to know of a placement.
struct LayoutSummary {
    Layout layout;
    int nodes = 0;  // that hold a rank
    int ranks_of_fullest_node = 0;
    int groups_on_one_node = 0;  // whose gradients never leave a node
    int nodes_of_widest_group = 0;
    std::vector<std::vector<NodeShare>> groups;  // [group], ordered by node
};

/// Maps groups to nodes, so that each group spans few nodes however the launcher numbered ranks:
/// groups that fit into one node are placed first, each into the fullest-fitting node; a group that
/// must span nodes takes the largest remainders, and for its rest the smallest that suffices.
/// Groups are then numbered by their first node, and a group's ranks by node and world rank.
///
/// Eight ranks on two nodes, dealt out in turn by the launcher (`--map-by node`), M = 2:
///
///       node 0                        node 1
///       world rank  0  2  4  6        world rank  1  3  5  7
///                   |  |  |  |                    |  |  |  |
///       group_rank  0  1  2  3        group_rank  0  1  2  3
///                   `--'--'--'                    `--'--'--'
///                    group 0                       group 1
///       leader: world rank 0          leader: world rank 1
///
/// The cut by world rank (0-3, 4-7) would send both groups' gradients over the network.
class ParallelismController {
public:
    /// `node_of_world_rank[r]` is the node of world rank r, from 0 to ranks - 1; numbers may be
    /// left out. Memory grows with ranks, time with ranks times their logarithm. Throws
    /// Error(internal) when its size is not layout.ranks or a node's number is out of range.
    ParallelismController(Layout layout, const std::vector<int>& node_of_world_rank);

    const Layout& layout() const { return layout_; }

    /// All throw std::out_of_range for a rank or group that does not exist.
    const RankPlace& place(int world_rank) const;
    int world_rank_of(int group, int group_rank) const;
    int leader(int group) const { return world_rank_of(group, 0); }

    /// Ascending by node; the ranks sum up to the degree.
    std::vector<NodeShare> shares_of(int group) const;

    /// Nodes that hold a rank of `group`, ascending.
    std::vector<int> nodes_of(int group) const;

    LayoutSummary summary() const;

private:
    Layout layout_;
    std::vector<RankPlace> places_;  // [world_rank]
    std::vector<int> members_;       // [group * degree + group_rank], world ranks
};

/// Nodes for a dry run: ranks 0 to ranks_per_node - 1 on node 0, and so on; the last may be
/// smaller. Throws Error(usage) unless both are at least 1.
std::vector<int> fill_nodes(int ranks, int ranks_per_node);

}  // namespace hpcai::plan
