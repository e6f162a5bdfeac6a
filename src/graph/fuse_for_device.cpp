// SPDX-License-Identifier: Apache-2.0
#include <hpcai/graph/fuse_for_device.hpp>

#include "replace_nodes.hpp"

namespace hpcai::graph {
namespace {

/// Whether the training statistics are computed over the whole batch.
bool spans_batch(const ops::BatchNorm& norm) {
    if (norm.frozen) return false;
    return norm.statistics_samples == 0 || norm.statistics_samples == norm.input[0];
}

/// Visits the nodes of a graph in order and fuses nodes into later nodes.
class Fuser {
public:
    Fuser(const Graph& graph, const Accepts& accepts, const NetworkOptions& options)
        : graph_(graph),
          accepts_(accepts),
          options_(options),
          nodes_(graph.nodes().begin(), graph.nodes().end()) {}

    Graph run() {
        for (std::size_t index = 0; index < nodes_.size(); ++index) {
            if (std::holds_alternative<ops::Convolution>(nodes_[index]->operation)) {
                fuse_convolution(index);
            } else if (std::holds_alternative<ops::BatchNorm>(nodes_[index]->operation)) {
                fuse_norm(index);
            }
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

    /// The BatchNorm that computes `value`. Null if another or a fused operation computes it, the
    /// statistics do not span the batch, or a node other than `reader` reads `value`.
    const Node* norm_before(ValueId value, NodeId reader) const {
        const NodeId producer = graph_.value(value).producer;
        if (producer == kNoNode || graph_.only_consumer(value) != reader) return nullptr;
        const auto& node = nodes_[producer];
        const auto* norm = node ? std::get_if<ops::BatchNorm>(&node->operation) : nullptr;
        return norm != nullptr && spans_batch(*norm) ? &*node : nullptr;
    }

    /// Whether the only reader of `value` is a BatchNorm that can use the per-channel sums of it.
    bool reader_uses_sums(ValueId value) const {
        const NodeId reader = only_consumer<ops::BatchNorm>(graph_, value);
        if (reader == kNoNode) return false;
        const Node& node = graph_.nodes()[reader];
        ops::BatchNorm norm = std::get<ops::BatchNorm>(node.operation);
        norm.from_sums = true;
        const bool is_residual = norm.add && node.inputs[1] == value;
        return !is_residual && spans_batch(norm) && accepts(norm, node);
    }

    void fuse_convolution(std::size_t index) {
        Node& node = *nodes_[index];
        ops::Convolution convolution = std::get<ops::Convolution>(node.operation);
        convolution.sums = reader_uses_sums(node.output);
        const Node* before = norm_before(node.inputs[0], static_cast<NodeId>(index));
        if (before != nullptr) {
            const auto& norm = std::get<ops::BatchNorm>(before->operation);
            const ops::NormConvolution fused{norm, convolution};
            if (norm.relu && !norm.add && accepts(fused, *before))
                return merge(fused, index, *before);
        }
        if (convolution.sums && accepts(convolution, node)) node.operation = convolution;
    }

    void fuse_norm(std::size_t index) {
        Node& node = *nodes_[index];
        auto& norm = std::get<ops::BatchNorm>(node.operation);
        const NodeId producer = graph_.value(node.inputs[0]).producer;
        norm.from_sums = producer != kNoNode && nodes_[producer] &&
                         outputs_channel_sums(nodes_[producer]->operation);
        if (!norm.add || !spans_batch(norm)) return;
        const Node* before = norm_before(node.inputs[1], static_cast<NodeId>(index));
        if (before == nullptr) return;
        const auto& inner = std::get<ops::BatchNorm>(before->operation);
        const ops::DualNorm fused{norm, inner};
        if (!inner.relu && !inner.add && accepts(fused, node)) merge(fused, index, *before);
    }

    /// Replaces node `index` and `before` by `fused`, which reads the input of `before`.
    void merge(const ops::NormConvolution& fused, std::size_t index, const Node& before) {
        Node& node = *nodes_[index];
        node.operation = fused;
        node.inputs = before.inputs;
        node.parameters.insert(node.parameters.begin(), before.parameters.begin(),
                               before.parameters.end());
        node.statistics = before.statistics;
        remove(before);
    }

    void merge(const ops::DualNorm& fused, std::size_t index, const Node& before) {
        Node& node = *nodes_[index];
        node.operation = fused;
        node.inputs[1] = before.inputs[0];
        node.parameters.insert(node.parameters.end(), before.parameters.begin(),
                               before.parameters.end());
        node.inner_statistics = before.statistics;
        remove(before);
    }

    void remove(const Node& node) { nodes_[graph_.value(node.output).producer].reset(); }

    const Graph& graph_;
    const Accepts& accepts_;
    const NetworkOptions& options_;
    std::vector<std::optional<Node>> nodes_;  // [node] replacement; absent: fused into a later node
};

}  // namespace

Graph fuse_for_device(const Graph& graph, const Accepts& accepts, const NetworkOptions& options) {
    const Graph simple = fuse(graph);
    if (options.mode != device::Mode::training) return simple;
    return Fuser(simple, accepts, options).run();
}

Graph fuse_for_device(const Graph& graph, device::Device& device, const NetworkOptions& options) {
    const auto accepts = [&](const ops::Operation& operation, const device::KernelOptions& kernel) {
        return device.accepts(operation, kernel);
    };
    return fuse_for_device(graph, Accepts(accepts), options);
}

}  // namespace hpcai::graph
