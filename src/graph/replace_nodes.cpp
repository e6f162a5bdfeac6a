// SPDX-License-Identifier: Apache-2.0
#include "replace_nodes.hpp"

namespace hpcai::graph {

Graph replace_nodes(const Graph& graph, const std::vector<std::optional<Node>>& nodes) {
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

}  // namespace hpcai::graph
