// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>

#include <hpcai/graph/graph.hpp>

namespace hpcai::graph {
namespace {

/// What a BatchNorm node becomes, and the nodes it swallows; the last of them gives the place.
struct Fusion {
    ops::BatchNorm operation;
    std::vector<ValueId> inputs;
    NodeId last = kNoNode;
    std::vector<NodeId> swallowed;
};

template <typename Operation>
std::optional<NodeId> only_consumer(const Graph& graph, ValueId value) {
    const std::vector<NodeId> readers = graph.consumers(value);
    if (readers.size() != 1) return std::nullopt;
    const Node& reader = graph.nodes()[static_cast<std::size_t>(readers.front())];
    if (!std::holds_alternative<Operation>(reader.operation)) return std::nullopt;
    return readers.front();
}

/// The chain that starts at BatchNorm `node`, nothing when it ends there. An Add is taken only
/// together with the ReLU behind it, and by the first of two BatchNorms that feed it.
std::optional<Fusion> fusion_at(const Graph& graph, NodeId node, const std::set<NodeId>& taken) {
    const Node& norm = graph.nodes()[static_cast<std::size_t>(node)];
    const auto* operation = std::get_if<ops::BatchNorm>(&norm.operation);
    if (operation == nullptr || operation->relu) return std::nullopt;
    Fusion fusion{*operation, norm.inputs, node, {node}};
    fusion.operation.relu = true;
    if (const auto relu = only_consumer<ops::Relu>(graph, norm.output)) {
        fusion.last = *relu;
        fusion.swallowed.push_back(*relu);
        return fusion;
    }
    const auto add = only_consumer<ops::Add>(graph, norm.output);
    if (!add || taken.contains(*add)) return std::nullopt;
    const Node& sum = graph.nodes()[static_cast<std::size_t>(*add)];
    const auto relu = only_consumer<ops::Relu>(graph, sum.output);
    if (!relu || sum.inputs[0] == sum.inputs[1]) return std::nullopt;
    fusion.operation.add = true;
    fusion.inputs.push_back(sum.inputs[0] == norm.output ? sum.inputs[1] : sum.inputs[0]);
    fusion.last = *relu;
    fusion.swallowed.insert(fusion.swallowed.end(), {*add, *relu});
    return fusion;
}

}  // namespace

Graph fuse(const Graph& graph) {
    const auto& nodes = graph.nodes();
    std::vector<std::optional<Fusion>> ends_here(nodes.size());
    std::set<NodeId> swallowed;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        auto fusion = fusion_at(graph, static_cast<NodeId>(node), swallowed);
        if (!fusion) continue;
        swallowed.insert(fusion->swallowed.begin(), fusion->swallowed.end());
        ends_here[static_cast<std::size_t>(fusion->last)] = std::move(fusion);
    }

    Graph fused;
    for (const Parameter& parameter : graph.parameters()) fused.add_parameter(parameter);
    for (const NormStatistics& statistics : graph.statistics()) fused.add_statistics(statistics);
    std::vector<ValueId> renamed(graph.values().size(), -1);
    const auto translate = [&](const std::vector<ValueId>& values) {
        std::vector<ValueId> result;
        for (const ValueId value : values)
            result.push_back(renamed[static_cast<std::size_t>(value)]);
        return result;
    };
    for (std::size_t value = 0; value < graph.values().size(); ++value) {
        const Value& old = graph.values()[value];
        if (old.producer == kNoNode) renamed[value] = fused.add_input(old.name, old.shape);
    }
    for (std::size_t node = 0; node < nodes.size(); ++node) {
        const Node& old = nodes[node];
        ValueId output = -1;
        if (const auto& fusion = ends_here[node]) {
            const Node& norm = nodes[static_cast<std::size_t>(fusion->swallowed.front())];
            output = fused.add_node(norm.name, fusion->operation, translate(fusion->inputs),
                                    norm.parameters, norm.statistics);
        } else if (!swallowed.contains(static_cast<NodeId>(node))) {
            output = fused.add_node(old.name, old.operation, translate(old.inputs), old.parameters,
                                    old.statistics);
        }
        if (output >= 0) renamed[static_cast<std::size_t>(old.output)] = output;
    }
    return fused;
}

}  // namespace hpcai::graph
