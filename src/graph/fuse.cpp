// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <hpcai/graph/fuse_for_device.hpp>
#include <hpcai/graph/graph.hpp>

namespace hpcai::graph {
namespace {

/// Returns a copy of `graph` in which nodes[i] replaces node i; if nodes[i] is absent, node i is
/// removed. The inputs of nodes[i] are values of `graph`; the copy gives them new ids. No
/// element of `nodes` may read the output of a removed node.
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

/// Returns the only reader of `value` if its operation has this type; else kNoNode.
template <typename Operation>
NodeId only_consumer(const Graph& graph, ValueId value) {
    const NodeId reader = graph.only_consumer(value);
    if (reader == kNoNode) return kNoNode;
    const Node& node = graph.nodes()[reader];
    return std::holds_alternative<Operation>(node.operation) ? reader : kNoNode;
}

/// A fused node and the indices of the nodes that it replaces. It is placed at the last of them.
struct Fusion {
    Node node;
    std::vector<NodeId> replaced;
};

/// Returns the fusion of the chain of nodes that starts at node `index`; absent if there is none. A
/// chain is a norm and a ReLU, or a BatchNorm, an Add and a ReLU. `fused` has the nodes of earlier
/// fusions. If an Add reads two BatchNorms, it belongs to the chain of the first one.
std::optional<Fusion> fusion_at(const Graph& graph, NodeId index, const std::set<NodeId>& fused) {
    Fusion fusion{graph.nodes()[index], {index}};
    if (auto* group_norm = std::get_if<ops::GroupNorm>(&fusion.node.operation)) {
        const NodeId relu = only_consumer<ops::Relu>(graph, fusion.node.output);
        if (relu == kNoNode || group_norm->relu) return std::nullopt;
        group_norm->relu = true;
        fusion.replaced.push_back(relu);
        return fusion;
    }
    auto* norm = std::get_if<ops::BatchNorm>(&fusion.node.operation);
    if (norm == nullptr || norm->relu) return std::nullopt;
    norm->relu = true;
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
    norm->add = true;
    fusion.node.inputs.push_back(sum.inputs[0] == output ? sum.inputs[1] : sum.inputs[0]);
    fusion.replaced.insert(fusion.replaced.end(), {add, relu});
    return fusion;
}

/// Whether the training statistics are computed over the whole batch.
bool spans_batch(const ops::BatchNorm& norm) {
    if (norm.frozen) return false;
    return norm.statistics_samples == 0 || norm.statistics_samples == norm.input[0];
}

/// Makes the fusions that a device accepts, node by node. A BatchNorm or Convolution that is fused
/// into a later node is removed. Otherwise a Convolution may compute sums for the BatchNorm after
/// it.
class Fuser {
public:
    Fuser(const Graph& graph, const Accepts& accepts, const NetworkOptions& options)
        : graph_(graph),
          accepts_(accepts),
          options_(options),
          nodes_(graph.nodes().begin(), graph.nodes().end()) {}

    Graph run() {
        for (std::optional<Node>& node : nodes_) {
            if (ops::is_one_of<ops::Convolution>(node->operation)) fuse_convolution(*node);
            if (ops::is_one_of<ops::BatchNorm>(node->operation)) fuse_norm(*node);
            if (ops::is_one_of<ops::MaxPool>(node->operation)) fuse_pool(*node);
        }
        return replace_nodes(graph_, nodes_);
    }

private:
    bool accepts(const ops::Operation& operation, const Node& node) const {
        return accepts_(operation, {.compute = options_.compute,
                                    .mode = device::Mode::training,
                                    .needs_input_gradient = !graph_.needs_no_input_gradient(node),
                                    .tf32 = options_.tf32,
                                    .int8 = options_.int8});
    }

    /// Returns the BatchNorm that computes `value` for its only reader. Null if there is none, if
    /// it is already fused, or if its statistics do not span the batch.
    const Node* norm_before(ValueId value) const {
        const NodeId producer = graph_.value(value).producer;
        if (producer == kNoNode || graph_.only_consumer(value) == kNoNode) return nullptr;
        const Node& node = *nodes_[producer];
        const auto* norm = std::get_if<ops::BatchNorm>(&node.operation);
        return norm != nullptr && spans_batch(*norm) ? &node : nullptr;
    }

    /// Whether the only reader of `value` is a BatchNorm that can compute its statistics from the
    /// per-channel sums of `value` (ops::outputs_channel_sums).
    bool reader_uses_sums(ValueId value) const {
        const NodeId reader = only_consumer<ops::BatchNorm>(graph_, value);
        if (reader == kNoNode) return false;
        const Node& node = graph_.nodes()[reader];
        ops::BatchNorm norm = std::get<ops::BatchNorm>(node.operation);
        norm.from_sums = true;
        const bool is_residual = norm.add && node.inputs[1] == value;
        return !is_residual && spans_batch(norm) && accepts(norm, node);
    }

    void fuse_convolution(Node& node) {
        ops::Convolution convolution = std::get<ops::Convolution>(node.operation);
        convolution.sums = reader_uses_sums(node.output);
        if (convolution.sums && accepts(convolution, node)) node.operation = convolution;
    }

    /// Lets the BatchNorm use the sums of its input, if there are any. A BatchNorm that adds a
    /// second input is also fused, as far as the device accepts. If another BatchNorm computes the
    /// second input for only this node, both are fused with the 1 x 1 convolutions before them, or
    /// else with each other; nothing is fused if the other one has an addition or a ReLU. Otherwise
    /// this BatchNorm is fused with the 1 x 1 convolution before it.
    void fuse_norm(Node& node) {
        auto& norm = std::get<ops::BatchNorm>(node.operation);
        const NodeId producer = graph_.value(node.inputs[0]).producer;
        norm.from_sums = producer != kNoNode && outputs_channel_sums(nodes_[producer]->operation);
        if (!norm.add || !spans_batch(norm)) return;
        const auto pointwise = pointwise_norm(node);
        const Node* before = norm_before(node.inputs[1]);
        if (before == nullptr) {
            if (pointwise) fuse_convolution_into(node, *pointwise);
            return;
        }
        const auto& inner = std::get<ops::BatchNorm>(before->operation);
        if (inner.relu || inner.add) return;
        if (const auto other = pointwise_norm(*before); pointwise && other) {
            fuse_convolution_into(*nodes_[graph_.value(node.inputs[1]).producer], *other);
            fuse_convolution_into(node, *pointwise);
            return;
        }
        const ops::DualNorm fused{norm, inner};
        if (!accepts(fused, node)) return;
        node.operation = fused;
        node.inputs[1] = before->inputs[0];
        node.parameters.insert(node.parameters.end(), before->parameters.begin(),
                               before->parameters.end());
        node.inner_statistics = before->statistics;
        remove(*before);
    }

    /// Returns the accepted fusion of a BatchNorm and the 1 x 1 convolution before it, if there is
    /// one.
    std::optional<ops::PointwiseNorm> pointwise_norm(const Node& node) const {
        const NodeId producer = graph_.value(node.inputs[0]).producer;
        if (producer == kNoNode || graph_.only_consumer(node.inputs[0]) == kNoNode) return {};
        const auto* convolution = std::get_if<ops::Convolution>(&nodes_[producer]->operation);
        if (convolution == nullptr || convolution->kernel != 1 || convolution->stride != 1)
            return {};
        ops::PointwiseNorm fused{*convolution, std::get<ops::BatchNorm>(node.operation)};
        fused.convolution.sums = fused.norm.from_sums = false;
        // The fused kernel writes the gradients of all inputs.
        if (fused.norm.add && !graph_.needs_gradient(node.inputs[1])) return {};
        if (!accepts(fused, *nodes_[producer])) return {};
        return fused;
    }

    void fuse_convolution_into(Node& node, const ops::PointwiseNorm& fused) {
        const Node& before = *nodes_[graph_.value(node.inputs[0]).producer];
        node.operation = fused;
        node.inputs[0] = before.inputs[0];
        node.parameters.insert(node.parameters.begin(), before.parameters.begin(),
                               before.parameters.end());
        remove(before);
    }

    /// Fuses the BatchNorm and ReLU before a MaxPool into it.
    void fuse_pool(Node& node) {
        const Node* before = norm_before(node.inputs[0]);
        if (before == nullptr) return;
        const auto& norm = std::get<ops::BatchNorm>(before->operation);
        const ops::NormPool fused{norm, std::get<ops::MaxPool>(node.operation)};
        if (!norm.relu || norm.add || !accepts(fused, *before)) return;
        node.operation = fused;
        node.inputs = before->inputs;
        node.parameters = before->parameters;
        node.statistics = before->statistics;
        remove(*before);
    }

    void remove(const Node& node) { nodes_[graph_.value(node.output).producer].reset(); }

    const Graph& graph_;
    const Accepts& accepts_;
    const NetworkOptions& options_;
    std::vector<std::optional<Node>> nodes_;  // [node] replacement; absent: fused into a later node
};

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

Graph fuse_for_device(const Graph& graph, const Accepts& accepts, const NetworkOptions& options) {
    const Graph simple = fuse(graph);
    if (options.mode != device::Mode::training) return simple;
    return Fuser(simple, accepts, options).run();
}

Graph fuse_for_device(const Graph& graph, device::Device& device, const NetworkOptions& options) {
    const Accepts accepts = [&](const auto& operation, const auto& kernel_options) {
        return device.accepts(operation, kernel_options);
    };
    return fuse_for_device(graph, accepts, options);
}

}  // namespace hpcai::graph
