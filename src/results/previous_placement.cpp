// SPDX-License-Identifier: Apache-2.0
#include "previous_placement.hpp"

#include <map>
#include <set>

#include <hpcai/base/error.hpp>
#include <hpcai/verification/derive.hpp>

namespace hpcai::results {
namespace {

/// Assigns a number to the node of each host.
class NodeNumbers {
public:
    NodeNumbers(const std::vector<PlaceRecord>& current, const std::vector<std::string>& hosts) {
        for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
            nodes_of_host_[current[rank].host].insert(current[rank].node);
        }
        for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
            if (!nodes_of_host_.contains(hosts[rank])) continue;
            const bool has_stayed = hosts[rank] == current[rank].host;
            used_numbers_.insert(has_stayed ? current[rank].node
                                            : node_of(hosts[rank], current[rank].node));
        }
    }

    /// Returns the node of a rank that was on `host`; its current `node` has another host name.
    int node_of(const std::string& host, int node) {
        const auto nodes = nodes_of_host_.find(host);
        if (nodes != nodes_of_host_.end()) {  // nodes with equal names cannot be distinguished
            return nodes->second.size() == 1 ? *nodes->second.begin() : node;
        }
        const auto assigned = assigned_.find(host);
        if (assigned != assigned_.end()) return assigned->second;
        int number = node;
        if (used_numbers_.contains(number)) number = 0;
        while (used_numbers_.contains(number)) ++number;
        used_numbers_.insert(number);
        return assigned_[host] = number;
    }

private:
    std::map<std::string, std::set<int>> nodes_of_host_;  // in the launch that ends the run
    std::set<int> used_numbers_;
    std::map<std::string, int> assigned_;
};

bool has_same_groups(const plan::ParallelismController& a, const plan::ParallelismController& b) {
    for (int rank = 0; rank < a.layout().ranks; ++rank) {
        const plan::RankPlace& in_a = a.place(rank);
        const plan::RankPlace& in_b = b.place(rank);
        if (in_a.group != in_b.group || in_a.group_rank != in_b.group_rank) return false;
    }
    return true;
}

}  // namespace

std::vector<int> nodes_of_hosts(const std::vector<PlaceRecord>& current,
                                const std::vector<std::string>& hosts) {
    NodeNumbers numbers(current, hosts);
    std::vector<int> nodes;
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
        const PlaceRecord& place = current[rank];
        const bool has_stayed = hosts[rank] == place.host;
        nodes.push_back(has_stayed ? place.node : numbers.node_of(hosts[rank], place.node));
    }
    return nodes;
}

plan::ParallelismController controller_for_nodes(const config::Config& config,
                                                 const plan::ParallelismController& current,
                                                 const std::vector<int>& nodes) {
    try {
        plan::ParallelismController previous = verification::place_ranks(config, nodes);
        return has_same_groups(current, previous) ? previous : current;
    } catch (const Error&) {  // no layout fits the ranks per node of `nodes`
        return current;
    }
}

}  // namespace hpcai::results
