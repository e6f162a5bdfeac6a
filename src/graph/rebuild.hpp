// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <hpcai/graph/graph.hpp>

namespace hpcai::graph {

/// `graph` with `nodes` in place of its own, one for one, which read values of `graph`. Nothing
/// stands for a node whose output nobody reads any more.
Graph rebuild(const Graph& graph, const std::vector<std::optional<Node>>& nodes);

/// The node that alone reads `value`, if its operation is of this type; else kNoNode.
template <typename Operation>
NodeId only_consumer(const Graph& graph, ValueId value) {
    const NodeId reader = graph.only_consumer(value);
    if (reader == kNoNode) return kNoNode;
    const Node& node = graph.nodes()[reader];
    return std::holds_alternative<Operation>(node.operation) ? reader : kNoNode;
}

}  // namespace hpcai::graph
