// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <hpcai/graph/graph.hpp>

#include "rebuild.hpp"

namespace hpcai::graph {
namespace {

/// What a normalization's node becomes, and the nodes it swallows; the last of them gives the
/// place.
struct Fusion {
    Node node;
    std::vector<NodeId> swallowed;
};

/// The chain that starts at normalization `index`, nothing when it ends there. An Add is taken only
/// together with the ReLU behind it, and by the first of two BatchNorms that feed it.
std::optional<Fusion> fusion_at(const Graph& graph, NodeId index, const std::set<NodeId>& taken) {
    Fusion fusion{graph.nodes()[index], {index}};
    if (auto* group_norm = std::get_if<ops::GroupNorm>(&fusion.node.operation)) {
        const NodeId relu = only_consumer<ops::Relu>(graph, fusion.node.output);
        if (relu == kNoNode || group_norm->relu) return std::nullopt;
        group_norm->relu = true;
        fusion.swallowed.push_back(relu);
        return fusion;
    }
    auto* operation = std::get_if<ops::BatchNorm>(&fusion.node.operation);
    if (operation == nullptr || operation->relu) return std::nullopt;
    operation->relu = true;
    const ValueId output = fusion.node.output;
    if (const NodeId relu = only_consumer<ops::Relu>(graph, output); relu != kNoNode) {
        fusion.swallowed.push_back(relu);
        return fusion;
    }
    const NodeId add = only_consumer<ops::Add>(graph, output);
    if (add == kNoNode || taken.contains(add)) return std::nullopt;
    const Node& sum = graph.nodes()[add];
    const NodeId relu = only_consumer<ops::Relu>(graph, sum.output);
    if (relu == kNoNode || sum.inputs[0] == sum.inputs[1]) return std::nullopt;
    operation->add = true;
    fusion.node.inputs.push_back(sum.inputs[0] == output ? sum.inputs[1] : sum.inputs[0]);
    fusion.swallowed.insert(fusion.swallowed.end(), {add, relu});
    return fusion;
}

}  // namespace

Graph fuse(const Graph& graph) {
    std::vector<std::optional<Node>> nodes(graph.nodes().begin(), graph.nodes().end());
    std::set<NodeId> swallowed;
    for (std::size_t index = 0; index < nodes.size(); ++index) {
        auto fusion = fusion_at(graph, static_cast<NodeId>(index), swallowed);
        if (!fusion) continue;
        for (const NodeId node : fusion->swallowed) {
            swallowed.insert(node);
            nodes[node].reset();
        }
        nodes[fusion->swallowed.back()] = std::move(fusion->node);
    }
    return rebuild(graph, nodes);
}

}  // namespace hpcai::graph
