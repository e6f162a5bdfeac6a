// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <hpcai/base/error.hpp>
#include <hpcai/metrics/ledger.hpp>

namespace hpcai::metrics {
namespace {

/// Counts one node. A shared parameter counts for its first node; `counted` holds the parameters
/// of earlier nodes.
LedgerRow count_node(const graph::Graph& graph, const graph::Node& node,
                     std::set<graph::ParameterId>& counted) {
    LedgerRow row{node.name, std::string(ops::name_of(node.operation)),
                  graph.value(node.output).shape};
    for (const graph::ParameterId parameter : node.parameters) {
        if (!counted.insert(parameter).second) continue;
        row.parameters += graph.parameters().at(parameter).shape.elements();
    }
    row.activation_elements = row.output.elements();
    for (std::size_t index = 0; index < row.flops.size(); ++index) {
        row.flops[index] = graph::flops(graph, node, ops::kLedgers[index].ledger);
    }
    return row;
}

void add(LedgerRow& total, const LedgerRow& row) {
    total.parameters += row.parameters;
    total.activation_elements += row.activation_elements;
    for (std::size_t index = 0; index < row.flops.size(); ++index) {
        total.flops[index] += row.flops[index];
    }
}

constexpr double kFp32Bytes = 4;

/// The tensors of the forward pass that the input gradient reads.
struct Rereads {
    bool inputs = false;
    bool output = false;
};

Rereads rereads_of(const ops::Operation& operation) {
    using namespace ops;
    if (const auto* norm = std::get_if<BatchNorm>(&operation)) return {!norm->frozen, norm->relu};
    if (const auto* bias = std::get_if<Bias>(&operation)) return {.output = bias->relu};
    if (const auto* linear = std::get_if<Linear>(&operation)) return {.output = linear->relu};
    return {is_one_of<DualNorm, PointwiseNorm, NormPool, GroupNorm>(operation),
            is_one_of<DualNorm, Relu, SoftmaxCrossEntropy, CellCrossEntropy>(operation)};
}

/// The bytes of a node's tensors; values without a dtype have the type `compute`.
class NodeBytes {
public:
    NodeBytes(const graph::Graph& graph, const graph::Node& node, tensor::DType compute)
        : graph_(graph), node_(node), compute_(static_cast<double>(size_of(compute))) {}

    double inputs() const {
        double bytes = 0;
        for (const graph::ValueId input : node_.inputs) bytes += value(input);
        return bytes;
    }
    double output() const { return value(node_.output); }
    double output_gradient() const { return elements(node_.output) * compute_; }
    double input_gradients() const {
        double bytes = 0;
        for (const graph::ValueId input : node_.inputs) {
            if (graph_.needs_gradient(input)) bytes += elements(input) * compute_;
        }
        return bytes;
    }
    /// Filters and weights have `weight_bytes` per element; other parameters are fp32.
    double parameters(double weight_bytes) const {
        double bytes = 0;
        for (const graph::ParameterId id : node_.parameters) {
            const graph::Parameter& parameter = graph_.parameters()[id];
            const bool is_weight = parameter.kind == graph::ParameterKind::filters ||
                                   parameter.kind == graph::ParameterKind::linear_weight;
            bytes += static_cast<double>(parameter.shape.elements()) *
                     (is_weight ? weight_bytes : kFp32Bytes);
        }
        return bytes;
    }
    double compute() const { return compute_; }

private:
    double elements(graph::ValueId id) const {
        return static_cast<double>(graph_.value(id).shape.elements());
    }
    double value(graph::ValueId id) const {
        const auto& dtype = graph_.value(id).dtype;
        return elements(id) * (dtype ? static_cast<double>(size_of(*dtype)) : compute_);
    }

    const graph::Graph& graph_;
    const graph::Node& node_;
    double compute_;
};

}  // namespace

const ops::Flops& LedgerRow::flops_in(ops::Ledger ledger) const {
    const auto* const row = std::ranges::find(ops::kLedgers, ledger, &ops::LedgerName::ledger);
    return flops.at(static_cast<std::size_t>(row - ops::kLedgers.begin()));
}

FlopsLedger::FlopsLedger(const graph::Graph& graph) {
    for (const graph::Value& value : graph.values()) {
        const bool is_input = value.producer == graph::kNoNode;
        ensure(!is_input || (value.shape.rank() > 0 && value.shape[0] == 1),
               "FLOPs are counted for one sample, but {} is {}", value.name,
               to_string(value.shape));
    }
    std::set<graph::ParameterId> counted;
    for (const graph::Node& node : graph.nodes()) {
        const auto* const norm = std::get_if<ops::BatchNorm>(&node.operation);
        const bool is_fused = norm != nullptr && (norm->add || norm->relu);
        ensure(!is_fused, "FLOPs are counted over the unfused graph, but {} is {}", node.name,
               ops::name_of(node.operation));
        rows_.push_back(count_node(graph, node, counted));
        add(total_, rows_.back());
    }
}

double moved_bytes(const graph::Graph& graph, const graph::Node& node, ops::Pass pass,
                   tensor::DType compute) {
    const NodeBytes bytes(graph, node, compute);
    const Rereads reread = rereads_of(node.operation);
    switch (pass) {
        case ops::Pass::prepare:
            return bytes.parameters(kFp32Bytes) + bytes.parameters(bytes.compute());
        case ops::Pass::forward:
            return bytes.inputs() + bytes.parameters(bytes.compute()) + bytes.output();
        case ops::Pass::weight_gradient:
            return bytes.inputs() + bytes.output_gradient() + bytes.parameters(kFp32Bytes);
        case ops::Pass::input_gradient:
            return bytes.output_gradient() + bytes.parameters(bytes.compute()) +
                   bytes.input_gradients() + (reread.inputs ? bytes.inputs() : 0) +
                   (reread.output ? bytes.output() : 0);
    }
    return 0;
}

}  // namespace hpcai::metrics
