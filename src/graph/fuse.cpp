// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <hpcai/graph/graph.hpp>

#include "replace_nodes.hpp"

namespace hpcai::graph {
namespace {

/// A fused node and the indices of the nodes that it replaces. It is placed at the last of them.
struct Fusion {
    Node node;
    std::vector<NodeId> replaced;
};

/// The fusion of the chain that starts at node `index`; absent if there is none. An Add is included
/// only with the ReLU after it, and only in the chain of the first BatchNorm that it reads.
std::optional<Fusion> fusion_at(const Graph& graph, NodeId index, const std::set<NodeId>& fused) {
    Fusion fusion{graph.nodes()[index], {index}};
    if (auto* group_norm = std::get_if<ops::GroupNorm>(&fusion.node.operation)) {
        const NodeId relu = only_consumer<ops::Relu>(graph, fusion.node.output);
        if (relu == kNoNode || group_norm->relu) return std::nullopt;
        group_norm->relu = true;
        fusion.replaced.push_back(relu);
        return fusion;
    }
    auto* operation = std::get_if<ops::BatchNorm>(&fusion.node.operation);
    if (operation == nullptr || operation->relu) return std::nullopt;
    operation->relu = true;
    const ValueId output = fusion.node.output;
    if (const NodeId relu = only_consumer<ops::Relu>(graph, output); relu != kNoNode) {
        fusion.replaced.push_back(relu);
        return fusion;
    }
    const NodeId add = only_consumer<ops::Add>(graph, output);
    if (add == kNoNode || fused.contains(add)) return std::nullopt;
    const Node& sum = graph.nodes()[add];
    const NodeId relu = only_consumer<ops::Relu>(graph, sum.output);
    if (relu == kNoNode || sum.inputs[0] == sum.inputs[1]) return std::nullopt;
    operation->add = true;
    fusion.node.inputs.push_back(sum.inputs[0] == output ? sum.inputs[1] : sum.inputs[0]);
    fusion.replaced.insert(fusion.replaced.end(), {add, relu});
    return fusion;
}

}  // namespace

Graph fuse(const Graph& graph) {
    std::vector<std::optional<Node>> nodes(graph.nodes().begin(), graph.nodes().end());
    std::set<NodeId> replaced;
    for (std::size_t index = 0; index < nodes.size(); ++index) {
        auto fusion = fusion_at(graph, static_cast<NodeId>(index), replaced);
        if (!fusion) continue;
        for (const NodeId node : fusion->replaced) {
            replaced.insert(node);
            nodes[node].reset();
        }
        nodes[fusion->replaced.back()] = std::move(fusion->node);
    }
    return replace_nodes(graph, nodes);
}

}  // namespace hpcai::graph
