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
    const std::vector<NodeId> readers = graph.consumers(value);
    if (readers.size() != 1) return kNoNode;
    const Node& reader = graph.nodes()[static_cast<std::size_t>(readers.front())];
    return std::holds_alternative<Operation>(reader.operation) ? readers.front() : kNoNode;
}

}  // namespace hpcai::graph
