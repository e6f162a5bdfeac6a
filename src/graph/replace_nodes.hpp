// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <hpcai/graph/graph.hpp>

namespace hpcai::graph {

/// Returns a copy of `graph` in which nodes[i] replaces node i. The inputs in `nodes` are values of
/// `graph`, renumbered in the copy. An absent nodes[i] removes node i, whose output no other
/// element of `nodes` may read.
inline Graph replace_nodes(const Graph& graph, const std::vector<std::optional<Node>>& nodes) {
    Graph rebuilt;
    for (const Parameter& parameter : graph.parameters()) rebuilt.add_parameter(parameter);
    for (const NormStatistics& statistics : graph.statistics()) rebuilt.add_statistics(statistics);
    std::vector<ValueId> new_ids(graph.values().size(), -1);
    for (std::size_t value = 0; value < new_ids.size(); ++value) {
        const Value& old = graph.values()[value];
        if (old.producer != kNoNode) continue;
        const auto id = static_cast<ValueId>(value);
        new_ids[value] = old.is_received ? rebuilt.add_received(old, graph.needs_gradient(id))
                                         : rebuilt.add_input(old.name, old.shape, *old.dtype);
    }
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        if (!nodes[node]) continue;
        Node copy = *nodes[node];
        for (ValueId& input : copy.inputs) input = new_ids[input];
        const ValueId old_output = graph.nodes()[node].output;
        new_ids[old_output] = rebuilt.add_node(std::move(copy));
    }
    for (const ValueId output : graph.outputs()) rebuilt.add_output(new_ids[output]);
    return rebuilt;
}

/// The only reader of `value` if its operation has this type; else kNoNode.
template <typename Operation>
NodeId only_consumer(const Graph& graph, ValueId value) {
    const NodeId reader = graph.only_consumer(value);
    if (reader == kNoNode) return kNoNode;
    const Node& node = graph.nodes()[reader];
    return std::holds_alternative<Operation>(node.operation) ? reader : kNoNode;
}

}  // namespace hpcai::graph
