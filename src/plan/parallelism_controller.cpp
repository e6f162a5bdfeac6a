// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include <hpcai/base/error.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::plan {
namespace {

/// World ranks sorted by (node, world rank), with the start of each node's ranks.
struct RanksByNode {
    std::vector<int> world_ranks;
    std::vector<int> first;  // [node] its first rank's index in world_ranks; last: their number
};

RanksByNode sort_by_node(const std::vector<int>& node_of_world_rank) {
    const int ranks = static_cast<int>(node_of_world_rank.size());
    RanksByNode sorted{std::vector<int>(node_of_world_rank.size()),
                       std::vector<int>(node_of_world_rank.size() + 1, 0)};
    for (const int node : node_of_world_rank) {
        ensure(node >= 0 && node < ranks, "node {} is not in 0..{}", node, ranks - 1);
        ++sorted.first[node + 1];
    }
    std::partial_sum(sorted.first.begin(), sorted.first.end(), sorted.first.begin());
    std::iota(sorted.world_ranks.begin(), sorted.world_ranks.end(), 0);
    std::ranges::stable_sort(sorted.world_ranks, {},
                             [&](int world_rank) { return node_of_world_rank[world_rank]; });
    return sorted;
}

/// Ranks of one node that belong to one group: a range of RanksByNode::world_ranks.
struct Chunk {
    int first = 0;
    int count = 0;
};

/// Free ranks of every node, assigned by best fit.
class FreeNodes {
public:
    explicit FreeNodes(const RanksByNode& sorted) : next_(sorted.first) {
        for (std::size_t node = 0; node + 1 < sorted.first.size(); ++node) {
            const int free = sorted.first[node + 1] - sorted.first[node];
            if (free > 0) nodes_by_free_[free].insert(node);
        }
    }

    /// Assigns at most `wanted` ranks of one node: the best-fitting node, or the node with the most
    /// free ranks if none has enough.
    Chunk take(int wanted) {
        auto bucket = nodes_by_free_.lower_bound(wanted);
        if (bucket == nodes_by_free_.end()) bucket = std::prev(bucket);
        const int free = bucket->first;
        const std::size_t node = *bucket->second.begin();
        bucket->second.erase(bucket->second.begin());
        if (bucket->second.empty()) nodes_by_free_.erase(bucket);
        const Chunk chunk{next_[node], std::min(wanted, free)};
        next_[node] += chunk.count;
        if (free > chunk.count) nodes_by_free_[free - chunk.count].insert(node);
        return chunk;
    }

private:
    std::map<int, std::set<std::size_t>> nodes_by_free_;
    std::vector<int> next_;  // [node], first free index in RanksByNode::world_ranks
};

/// The chunks of each group, in the final order of groups.
std::vector<std::vector<Chunk>> assign_chunks(const Layout& layout, const RanksByNode& sorted) {
    FreeNodes free(sorted);
    const auto by_position = [](const Chunk& a, const Chunk& b) { return a.first < b.first; };
    std::vector<std::vector<Chunk>> groups(layout.groups);
    for (auto& group : groups) {
        for (int remaining = layout.degree; remaining > 0; remaining -= group.back().count) {
            group.push_back(free.take(remaining));
        }
        std::sort(group.begin(), group.end(), by_position);
    }
    std::sort(groups.begin(), groups.end(),
              [&](const auto& a, const auto& b) { return by_position(a.front(), b.front()); });
    return groups;
}

}  // namespace

ParallelismController::ParallelismController(Layout layout,
                                             const std::vector<int>& node_of_world_rank)
    : layout_(layout) {
    ensure(layout.ranks >= 1 && layout.groups >= 1 && layout.degree >= 1 &&
               layout.ranks % layout.groups == 0 && layout.ranks / layout.groups == layout.degree,
           "a layout of {} ranks cannot have {} groups of {}", layout.ranks, layout.groups,
           layout.degree);
    ensure(std::ssize(node_of_world_rank) == layout.ranks, "expected the nodes of {} ranks, got {}",
           layout.ranks, node_of_world_rank.size());
    const RanksByNode sorted = sort_by_node(node_of_world_rank);
    places_.resize(node_of_world_rank.size());
    world_ranks_.reserve(node_of_world_rank.size());
    for (const auto& group : assign_chunks(layout, sorted)) {
        for (const Chunk& chunk : group) {
            for (int position = chunk.first; position < chunk.first + chunk.count; ++position) {
                const int world_rank = sorted.world_ranks[position];
                const int node = node_of_world_rank[world_rank];
                const int index = static_cast<int>(world_ranks_.size());
                places_[world_rank] = {world_rank, index / layout.degree, index % layout.degree,
                                       node, position - sorted.first[node]};
                world_ranks_.push_back(world_rank);
            }
        }
    }
}

int ParallelismController::world_rank_of(int group, int group_rank) const {
    if (group < 0 || group >= layout_.groups || group_rank < 0 || group_rank >= layout_.degree) {
        throw std::out_of_range(fmt::format("no rank {} of group {}", group_rank, group));
    }
    return world_ranks_[group * layout_.degree + group_rank];
}

std::vector<NodeShare> ParallelismController::shares_of(int group) const {
    std::vector<NodeShare> shares;
    for (int group_rank = 0; group_rank < layout_.degree; ++group_rank) {
        const int node = place(world_rank_of(group, group_rank)).node;
        if (shares.empty() || shares.back().node != node) shares.push_back({node, 0});
        ++shares.back().ranks;
    }
    return shares;
}

LayoutSummary ParallelismController::summary() const {
    LayoutSummary summary;
    summary.layout = layout_;
    for (const RankPlace& place : places_) {
        if (place.node_rank == 0) ++summary.nodes;
        summary.ranks_of_fullest_node =
            std::max(summary.ranks_of_fullest_node, place.node_rank + 1);
    }
    for (int group = 0; group < layout_.groups; ++group) {
        summary.groups.push_back(shares_of(group));
        const int nodes = static_cast<int>(summary.groups.back().size());
        summary.groups_on_one_node += nodes == 1;
        summary.nodes_of_widest_group = std::max(summary.nodes_of_widest_group, nodes);
    }
    return summary;
}

int ranks_of_fullest_node(const std::vector<int>& node_of_world_rank) {
    std::map<int, int> ranks_of_node;
    int fullest = 1;
    for (const int node : node_of_world_rank) fullest = std::max(fullest, ++ranks_of_node[node]);
    return fullest;
}

std::vector<int> fill_nodes(int ranks, int ranks_per_node) {
    require(ranks >= 1 && ranks_per_node >= 1, ExitCode::usage,
            "expected at least 1 rank and 1 rank per node, got {} and {}", ranks, ranks_per_node);
    std::vector<int> node_of_world_rank(ranks);
    for (int rank = 0; rank < ranks; ++rank) node_of_world_rank[rank] = rank / ranks_per_node;
    return node_of_world_rank;
}

}  // namespace hpcai::plan
