// SPDX-License-Identifier: Apache-2.0
#include "previous_placement.hpp"

#include <map>
#include <set>

#include <hpcai/base/error.hpp>
#include <hpcai/verification/derive.hpp>

namespace hpcai::results {
namespace {

/// Assigns a number of its own to the node of each host.
class NodeNumbers {
public:
    NodeNumbers(const NodesOfRanks& now, const std::vector<std::string>& hosts) {
        for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
            nodes_of_host_[now.hosts[rank]].insert(now.nodes[rank]);
        }
        for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
            if (!nodes_of_host_.contains(hosts[rank])) continue;
            const bool is_there = hosts[rank] == now.hosts[rank];
            used_.insert(is_there ? now.nodes[rank] : number(hosts[rank], now.nodes[rank]));
        }
    }

    /// Returns the node of a rank that is on `node` now and was on another `host`.
    int number(const std::string& host, int node) {
        const auto now = nodes_of_host_.find(host);
        if (now != nodes_of_host_.end()) {  // nodes of one name cannot be distinguished
            return now->second.size() == 1 ? *now->second.begin() : node;
        }
        const auto before = found_.find(host);
        if (before != found_.end()) return before->second;
        int number = node;
        if (used_.contains(number)) number = 0;
        while (used_.contains(number)) ++number;
        used_.insert(number);
        return found_[host] = number;
    }

private:
    std::map<std::string, std::set<int>> nodes_of_host_;  // in the launch that ends the run
    std::set<int> used_;
    std::map<std::string, int> found_;
};

bool has_same_groups(const plan::ParallelismController& one,
                     const plan::ParallelismController& other) {
    for (int rank = 0; rank < one.layout().ranks; ++rank) {
        const plan::RankPlace& mine = one.place(rank);
        const plan::RankPlace& its = other.place(rank);
        if (mine.group != its.group || mine.group_rank != its.group_rank) return false;
    }
    return true;
}

}  // namespace

std::vector<int> nodes_of_hosts(const NodesOfRanks& now, const std::vector<std::string>& hosts) {
    NodeNumbers numbers(now, hosts);
    std::vector<int> nodes = now.nodes;
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
        if (hosts[rank] != now.hosts[rank]) {
            nodes[rank] = numbers.number(hosts[rank], nodes[rank]);
        }
    }
    return nodes;
}

plan::ParallelismController controller_for_nodes(const config::Config& config,
                                                 const plan::ParallelismController& now,
                                                 const std::vector<int>& nodes) {
    try {
        plan::ParallelismController then = verification::place_ranks(config, nodes);
        return has_same_groups(now, then) ? then : now;
    } catch (const Error&) {  // no layout fits the ranks per node of `nodes`
        return now;
    }
}

}  // namespace hpcai::results
