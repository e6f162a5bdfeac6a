// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <hpcai/comm/all_reduce_traffic.hpp>
#include <hpcai/comm/collectives.hpp>

namespace hpcai::comm {

namespace {

/// The numbers of ranks with which a rank exchanges messages.
struct Exchanges {
    int inner = 1, parts = 1, sets = 1;
    bool owns = true;
    // Numbers of these ranks on other nodes.
    int inner_elsewhere = 0, owners_elsewhere = 0, outer_elsewhere = 0;
    int node = 0;
};

/// Lists the exchanges of all ranks without making their topologies, which would take too long for
/// 100,000 ranks.
std::vector<Exchanges> list_exchanges(const AllReduceOptions& options) {
    const std::vector<int>& nodes = options.node_of_rank;
    const std::vector<int> set_of_rank = sets_of_ranks(options);
    std::map<int, int> set_sizes, seen;
    for (const int set : set_of_rank) ++set_sizes[set];
    const auto by_size = [](const auto& a, const auto& b) { return a.second < b.second; };
    const int parts = std::ranges::min_element(set_sizes, by_size)->second;
    std::vector<int> places;                                            // of ranks in their sets
    std::map<std::pair<int, int>, int> of_set, owners_of_set, of_part;  // counts on a node
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        const int set = set_of_rank[rank], node = nodes[rank];
        places.push_back(seen[set]++);
        ++of_set[{set, node}];
        if (places.back() >= parts) continue;
        ++owners_of_set[{set, node}];
        ++of_part[{places.back(), node}];
    }
    const auto sets = static_cast<int>(set_sizes.size());
    std::vector<Exchanges> list;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        const int set = set_of_rank[rank], node = nodes[rank], place = places[rank];
        list.push_back({set_sizes[set], parts, sets, place < parts,
                        set_sizes[set] - of_set[{set, node}], parts - owners_of_set[{set, node}],
                        sets - of_part[{place, node}], node});
    }
    return list;
}

/// Returns the bytes that a rank sends, in total and to other nodes.
std::pair<double, double> bytes_sent(const Exchanges& rank, double bytes) {
    const double part = bytes / rank.parts, share = part / rank.sets;
    if (!rank.owns) return {bytes, rank.owners_elsewhere * part};
    const double sent = (rank.parts - 1 + rank.inner - 1) * part + 2 * (rank.sets - 1) * share;
    return {sent, (rank.owners_elsewhere + rank.inner_elsewhere) * part +
                      2 * rank.outer_elsewhere * share};
}

}  // namespace

AllReduceTraffic estimate_traffic(std::span<const PlannedAllReduce> sums) {
    AllReduceTraffic most;
    std::map<int, double> out_of_node;
    const auto raise = [](std::int64_t& number, double bytes_of_one) {
        number = std::max(number, static_cast<std::int64_t>(std::llround(bytes_of_one)));
    };
    for (const PlannedAllReduce& sum : sums) {
        if (sum.options.node_of_rank.size() <= 1) continue;
        const auto bytes = static_cast<double>(wire_bytes(sum.options.format, sum.values));
        const std::vector<Exchanges> ranks = list_exchanges(sum.options);
        for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
            auto [sent, between] = bytes_sent(ranks[rank], bytes);
            if (!sum.other_sent.empty()) {
                sent += static_cast<double>(sum.other_sent[rank].all);
                between += static_cast<double>(sum.other_sent[rank].to_other_nodes);
            }
            raise(most.sent, sent);
            raise(most.between_nodes, between);
            raise(most.out_of_node, out_of_node[ranks[rank].node] += between);
        }
    }
    return most;
}

AllReduceTraffic gather_traffic(Communicator& group, int node, const SentBytes& sent) {
    struct OfRank {
        std::int64_t node;
        SentBytes sent;
    };
    AllReduceTraffic most;
    std::map<std::int64_t, std::int64_t> out_of_node;
    for (const OfRank& rank : all_gather(group, OfRank{node, sent})) {
        most.sent = std::max(most.sent, rank.sent.all);
        most.between_nodes = std::max(most.between_nodes, rank.sent.to_other_nodes);
        out_of_node[rank.node] += rank.sent.to_other_nodes;
        most.out_of_node = std::max(most.out_of_node, out_of_node[rank.node]);
    }
    return most;
}

}  // namespace hpcai::comm
