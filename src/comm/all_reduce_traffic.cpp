// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <hpcai/comm/all_reduce_traffic.hpp>
#include <hpcai/comm/collectives.hpp>

namespace hpcai::comm {
namespace {

/// The place of a rank in the all-reduce (see AllReduceTopology).
struct PeerCounts {
    int inner = 1, parts = 1, sets = 1;  // number of inner ranks, of parts, of sets
    bool owns_part = true;
    int remote_inner = 0, remote_owners = 0, remote_outer = 0;  // number of peers on other nodes
    int node = 0;
};

/// Counts the peers of every rank. Calling all_reduce_topology for each of 100,000 ranks would take
/// too long.
std::vector<PeerCounts> count_peers(const AllReduceOptions& options) {
    const std::vector<int>& nodes = options.node_of_rank;
    const std::vector<int> set_of_rank = sets_of_ranks(options);
    std::map<int, int> set_sizes, next_index_of_set;
    for (const int set : set_of_rank) ++set_sizes[set];
    const auto by_size = [](const auto& a, const auto& b) { return a.second < b.second; };
    const int parts = std::ranges::min_element(set_sizes, by_size)->second;
    std::vector<int> indices;  // of ranks in their sets
    // numbers of ranks: by (set, node), local_outer by (part, node)
    std::map<std::pair<int, int>, int> local_inner, local_owners, local_outer;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        const int set = set_of_rank[rank], node = nodes[rank];
        indices.push_back(next_index_of_set[set]++);
        ++local_inner[{set, node}];
        if (indices.back() >= parts) continue;
        ++local_owners[{set, node}];
        ++local_outer[{indices.back(), node}];
    }
    const auto sets = static_cast<int>(set_sizes.size());
    std::vector<PeerCounts> counts;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        const int set = set_of_rank[rank], node = nodes[rank], index = indices[rank];
        counts.push_back(
            {set_sizes[set], parts, sets, index < parts, set_sizes[set] - local_inner[{set, node}],
             parts - local_owners[{set, node}], sets - local_outer[{index, node}], node});
    }
    return counts;
}

/// Returns the bytes that a rank sends, in total and to other nodes.
std::pair<double, double> bytes_sent(const PeerCounts& rank, double bytes) {
    const double part = bytes / rank.parts, share = part / rank.sets;
    if (!rank.owns_part) return {bytes, rank.remote_owners * part};
    const double sent = (rank.parts - 1 + rank.inner - 1) * part + 2 * (rank.sets - 1) * share;
    return {sent, (rank.remote_owners + rank.remote_inner) * part + 2 * rank.remote_outer * share};
}

}  // namespace

AllReduceTraffic estimate_traffic(std::span<const PlannedAllReduce> all_reduces) {
    AllReduceTraffic traffic;
    std::map<int, double> out_of_node;
    const auto raise = [](std::int64_t& maximum, double bytes) {
        maximum = std::max(maximum, static_cast<std::int64_t>(std::llround(bytes)));
    };
    for (const auto& [options, values, other_sent] : all_reduces) {
        if (options.node_of_rank.size() <= 1) continue;
        const auto encoded_bytes = static_cast<double>(wire_bytes(options.format, values));
        const std::vector<PeerCounts> ranks = count_peers(options);
        for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
            auto [sent, between] = bytes_sent(ranks[rank], encoded_bytes);
            if (!other_sent.empty()) {
                sent += static_cast<double>(other_sent[rank].total);
                between += static_cast<double>(other_sent[rank].to_other_nodes);
            }
            raise(traffic.sent, sent);
            raise(traffic.between_nodes, between);
            raise(traffic.out_of_node, out_of_node[ranks[rank].node] += between);
        }
    }
    return traffic;
}

AllReduceTraffic gather_traffic(Communicator& group, int node, const SentBytes& sent) {
    struct RankTraffic {
        std::int64_t node;
        SentBytes sent;
    };
    AllReduceTraffic traffic;
    std::map<std::int64_t, std::int64_t> out_of_node;
    for (const RankTraffic& rank : all_gather(group, RankTraffic{node, sent})) {
        traffic.sent = std::max(traffic.sent, rank.sent.total);
        traffic.between_nodes = std::max(traffic.between_nodes, rank.sent.to_other_nodes);
        out_of_node[rank.node] += rank.sent.to_other_nodes;
        traffic.out_of_node = std::max(traffic.out_of_node, out_of_node[rank.node]);
    }
    return traffic;
}

}  // namespace hpcai::comm
