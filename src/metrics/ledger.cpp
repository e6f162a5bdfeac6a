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

/// Flags the tensors of the forward pass that the computation of input gradients reads.
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

/// Returns the bytes of a node's parameters: `weight_bytes` for each filter or weight, else 4.
double parameter_bytes(const graph::Graph& graph, const graph::Node& node, double weight_bytes) {
    double bytes = 0;
    for (const graph::ParameterId id : node.parameters) {
        const graph::Parameter& parameter = graph.parameters()[id];
        const bool is_weight = parameter.kind == graph::ParameterKind::filters ||
                               parameter.kind == graph::ParameterKind::linear_weight;
        bytes += static_cast<double>(parameter.shape.elements()) *
                 (is_weight ? weight_bytes : kFp32Bytes);
    }
    return bytes;
}

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
    const auto compute_bytes = static_cast<double>(size_of(compute));
    const auto gradient = [&](graph::ValueId id) {
        return static_cast<double>(graph.value(id).shape.elements()) * compute_bytes;
    };
    const auto value = [&](graph::ValueId id) {
        const tensor::DType dtype = graph.value(id).dtype.value_or(compute);
        return static_cast<double>(graph.value(id).shape.elements()) *
               static_cast<double>(size_of(dtype));
    };
    double inputs = 0, input_gradients = 0;
    for (const graph::ValueId input : node.inputs) {
        inputs += value(input);
        if (graph.needs_gradient(input)) input_gradients += gradient(input);
    }
    const double parameters = parameter_bytes(graph, node, compute_bytes);
    const double fp32_parameters = parameter_bytes(graph, node, kFp32Bytes);
    const double parameter_gradients = fp32_parameters;
    const Rereads reread = rereads_of(node.operation);
    switch (pass) {
        case ops::Pass::prepare:
            return fp32_parameters + parameters;
        case ops::Pass::forward:
            return inputs + parameters + value(node.output);
        case ops::Pass::weight_gradient:
            return inputs + gradient(node.output) + parameter_gradients;
        case ops::Pass::input_gradient:
            return gradient(node.output) + parameters + input_gradients +
                   (reread.inputs ? inputs : 0) + (reread.output ? value(node.output) : 0);
    }
    return 0;
}

}  // namespace hpcai::metrics
