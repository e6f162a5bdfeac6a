// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <hpcai/comm/all_reduce_traffic.hpp>
#include <hpcai/comm/collectives.hpp>

namespace hpcai::comm {

namespace {

/// How many of some ranks are on each node.
using NodeCounts = std::map<int, int>;

/// What a rank sends, by the numbers of those that it exchanges with.
struct Exchanges {
    int inner = 1, parts = 1, sets = 1;
    bool owns = true;
    // The numbers of these ranks on other nodes.
    int inner_elsewhere = 0, owners_elsewhere = 0, outer_elsewhere = 0;
    int node = 0;
};

/// Lists all ranks without their places, which would take too long with 100,000 ranks.
class ExchangeList {
public:
    explicit ExchangeList(const AllReduceOptions& options)
        : options_(options), nodes_(options.node_of_rank) {}

    std::vector<Exchanges> list() {
        switch (options_.algorithm) {
            case AllReduceAlgorithm::torus_2d:
                list_torus();
                break;
            case AllReduceAlgorithm::hierarchical:
                list_hierarchy();
                break;
            case AllReduceAlgorithm::all_reduce:
                list_all();
                break;
        }
        return std::move(list_);
    }

private:
    int size() const { return static_cast<int>(nodes_.size()); }

    void list_all() {
        NodeCounts counts;
        for (const int node : nodes_) ++counts[node];
        for (const int node : nodes_) {
            list_.push_back(
                {.sets = size(), .outer_elsewhere = size() - counts[node], .node = node});
        }
    }

    void list_torus() {
        const int columns = columns_of_torus(options_.torus_columns, size());
        const int rows = size() / columns;
        std::vector<NodeCounts> of_row(static_cast<std::size_t>(rows)),
            of_column(static_cast<std::size_t>(columns));
        for (int rank = 0; rank < size(); ++rank) {
            ++of_row[rank / columns][nodes_[rank]];
            ++of_column[rank % columns][nodes_[rank]];
        }
        for (int rank = 0; rank < size(); ++rank) {
            const int node = nodes_[rank];
            const int elsewhere = columns - of_row[rank / columns][node];
            list_.push_back({columns, columns, rows, true, elsewhere, elsewhere,
                             rows - of_column[rank % columns][node], node});
        }
    }

    void list_hierarchy() {
        const std::vector<int> set_of_rank = nodes_of_ranks(options_);
        NodeCounts counts, seen;
        for (const int set : set_of_rank) ++counts[set];
        int least = size();
        for (const auto& [set, ranks] : counts) least = std::min(least, ranks);
        std::vector<int> places;  // of ranks in their sets
        std::map<std::pair<int, int>, int> of_set, owners_of_set, of_part;  // on a node
        for (int rank = 0; rank < size(); ++rank) {
            const int set = set_of_rank[rank], node = nodes_[rank];
            places.push_back(seen[set]++);
            ++of_set[{set, node}];
            if (places.back() >= least) continue;
            ++owners_of_set[{set, node}];
            ++of_part[{places.back(), node}];
        }
        const auto sets = static_cast<int>(counts.size());
        for (int rank = 0; rank < size(); ++rank) {
            const int set = set_of_rank[rank], node = nodes_[rank];
            const int place = places[rank];
            list_.push_back({counts[set], least, sets, place < least,
                             counts[set] - of_set[{set, node}], least - owners_of_set[{set, node}],
                             sets - of_part[{place, node}], node});
        }
    }

    const AllReduceOptions& options_;
    const std::vector<int>& nodes_;
    std::vector<Exchanges> list_;
};

/// Bytes in all, and of these to other nodes. A part is what `bytes` / parts, a share that / sets.
std::pair<double, double> bytes_sent(const Exchanges& rank, double bytes) {
    const double part = bytes / rank.parts, share = part / rank.sets;
    if (!rank.owns) return {bytes, rank.owners_elsewhere * part};
    const double sent = (rank.parts - 1 + rank.inner - 1) * part + 2 * (rank.sets - 1) * share;
    return {sent, (rank.owners_elsewhere + rank.inner_elsewhere) * part +
                      2 * rank.outer_elsewhere * share};
}

}  // namespace

AllReduceTraffic estimate_traffic(std::span<const PlannedSum> sums) {
    AllReduceTraffic most;
    std::map<int, double> out_of_node;
    const auto raise = [](std::int64_t& number, double bytes_of_one) {
        number = std::max(number, static_cast<std::int64_t>(std::llround(bytes_of_one)));
    };
    for (const PlannedSum& sum : sums) {
        if (sum.options.node_of_rank.size() <= 1) continue;
        const auto bytes = static_cast<double>(wire_bytes(sum.options.format, sum.values));
        const std::vector<Exchanges> ranks = ExchangeList(sum.options).list();
        for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
            auto [sent, between] = bytes_sent(ranks[rank], bytes);
            if (!sum.more.empty()) {
                sent += static_cast<double>(sum.more[rank].all);
                between += static_cast<double>(sum.more[rank].to_other_nodes);
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
