// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <hpcai/graph/graph.hpp>

namespace hpcai::graph {

/// Returns a copy of `graph` in which nodes[i] replaces node i. The inputs in `nodes` are values of
/// `graph`, renumbered in the copy. An absent nodes[i] removes node i, whose output no other
/// element of `nodes` may read.
Graph replace_nodes(const Graph& graph, const std::vector<std::optional<Node>>& nodes);

/// The only reader of `value` if its operation has this type; else kNoNode.
template <typename Operation>
NodeId only_consumer(const Graph& graph, ValueId value) {
    const NodeId reader = graph.only_consumer(value);
    if (reader == kNoNode) return kNoNode;
    const Node& node = graph.nodes()[reader];
    return std::holds_alternative<Operation>(node.operation) ? reader : kNoNode;
}

}  // namespace hpcai::graph
