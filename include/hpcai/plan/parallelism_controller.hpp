// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/config/config.hpp>

/// Mapping of any number of ranks to models, shards and samples: pure arithmetic without MPI.
namespace hpcai::plan {

/// Eq. 5 of the paper: ranks = groups x degree. Each group trains one base model.
struct Layout {
    int ranks = 1;          // Sys_scale in the paper
    int groups = 1;         // M
    int degree = 1;         // P_degree, ranks of one group
    int stages = 1;         // of the pipeline; the ranks of a stage are contiguous in the group
    int micro_batches = 1;  // into which a rank divides its samples of a batch
    int shards = 1;         // of each stage, by channels (tensor parallelism)

    /// Returns the number of replicas in a group, which share the samples of a batch.
    int data_degree() const { return degree / (stages * shards); }
    int stage_of(int group_rank) const { return group_rank / (data_degree() * shards); }
    int replica_of(int group_rank) const { return group_rank / shards % data_degree(); }
    int model_shard_of(int group_rank) const { return group_rank % shards; }
    /// Ranks are ordered by stage, then replica, then shard. The shards of a replica are
    /// consecutive ranks because they communicate the most.
    int group_rank_of(int stage, int replica, int shard = 0) const {
        return (stage * data_degree() + replica) * shards + shard;
    }
    /// Returns the index of a rank's (stage, shard), below partitions(), equal for its replicas.
    int partition_of(int group_rank) const {
        return stage_of(group_rank) * shards + model_shard_of(group_rank);
    }
    int partitions() const { return stages * shards; }
    int micro_batch_size(int batch_size) const {
        return batch_size / (data_degree() * micro_batches);
    }
};

/// Returns the layout that `bagging` requests on `ranks` ranks. Missing values follow from eq. 5;
/// if both are missing, P_degree is `ranks_per_node` (of the fullest node), or all ranks if there
/// are fewer. Throws an Error, which names keys, values and what is legal, in these cases:
///   - eq. 5 cannot hold, or M or P_degree is below 1,
///   - a batch cannot be divided evenly among ranks and micro-batches,
///   - the degrees of `parallel` do not multiply to P_degree, or fewer than two of them are set in
///     mode `mixed`, or
///   - training.batch_norm_samples neither divides the size of a rank's micro-batch nor is k times
///     this size, where k divides the number of replicas.
///
/// The error is Error(launch) if eq. 5 cannot hold or if another number of ranks may help, else
/// Error(usage). Another number may help only if P_degree is `auto`. For an error of the batch or
/// of batch_norm_samples, data_degree must be `auto`, too.
Layout make_layout(const config::BaggingConfig& bagging, const config::TrainingConfig& training,
                   const config::ParallelConfig& parallel, int ranks, int ranks_per_node);

/// Returns the number of consecutive replicas that share their BatchNorm statistics. `layout` is
/// from make_layout() with the same `training`.
int statistics_ranks(const config::TrainingConfig& training, const Layout& layout);

struct RankPlace {
    int world_rank = 0;  // as numbered by the launcher
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

/// Statistics of a placement, for estimates of traffic and memory.
struct LayoutSummary {
    Layout layout;
    int nodes = 0;  // with at least one rank
    int ranks_of_fullest_node = 0;
    int groups_on_one_node = 0;  // number of groups whose ranks are all on one node
    int nodes_of_widest_group = 0;
    std::vector<std::vector<NodeShare>> groups;  // [group], ordered by node
};

/// Maps groups to nodes, so that each group spans few nodes for any numbering by the launcher.
/// While a node has P_degree free ranks, a group gets the best-fitting node: of the nodes with
/// enough free ranks, the one with the fewest. After that, a group first takes the nodes with the
/// most free ranks, then the best-fitting node for its remaining ranks. Groups are then numbered by
/// node and world rank of their first rank, and a group's ranks by node and world rank.
///
/// Example with M = 2: eight ranks on two nodes, numbered round-robin (`--map-by node`):
///
///       node 0                        node 1
///       world rank  0  2  4  6        world rank  1  3  5  7
///                   |  |  |  |                    |  |  |  |
///       group_rank  0  1  2  3        group_rank  0  1  2  3
///                   `--'--'--'                    `--'--'--'
///                    group 0                       group 1
///       leader: world rank 0          leader: world rank 1
///
/// Groups by world rank (0-3, 4-7) would send the gradients of both groups over the network.
class ParallelismController {
public:
    /// `node_of_world_rank[r]` is the node of world rank r, a number from 0 to ranks - 1. Some
    /// numbers may have no rank. Memory is O(n) and time is O(n log n) for n ranks. Throws
    /// Error(internal) if `layout` violates eq. 5, if `layout.ranks` differs from the size of
    /// `node_of_world_rank`, or if a node is out of range.
    ParallelismController(Layout layout, const std::vector<int>& node_of_world_rank);

    const Layout& layout() const { return layout_; }

    /// The following functions throw std::out_of_range for a rank or group that does not exist.
    const RankPlace& place(int world_rank) const { return places_.at(world_rank); }
    int world_rank_of(int group, int group_rank) const;
    int leader(int group) const { return world_rank_of(group, 0); }

    /// Returns the nodes of a group with the number of its ranks on each, ascending by node.
    std::vector<NodeShare> shares_of(int group) const;

    LayoutSummary summary() const;

private:
    Layout layout_;
    std::vector<RankPlace> places_;  // [world_rank]
    std::vector<int> world_ranks_;   // [group * degree + group_rank]
};

/// Returns the largest number of ranks on one node, at least 1.
int ranks_of_fullest_node(const std::vector<int>& node_of_world_rank);

/// Returns node_of_world_rank for a dry run: ranks 0 to ranks_per_node - 1 on node 0, and so on;
/// the last node may have fewer. Throws Error(usage) unless both arguments are at least 1.
std::vector<int> fill_nodes(int ranks, int ranks_per_node);

}  // namespace hpcai::plan
