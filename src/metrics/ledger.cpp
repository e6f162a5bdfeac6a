// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <hpcai/base/error.hpp>
#include <hpcai/metrics/ledger.hpp>

namespace hpcai::metrics {
namespace {

bool is_fused(const ops::Operation& operation) {
    const auto* norm = std::get_if<ops::BatchNorm>(&operation);
    return norm != nullptr && (norm->add || norm->relu);
}

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
        ensure(!is_fused(node.operation), "FLOPs are counted over the unfused graph, but {} is {}",
               node.name, ops::name_of(node.operation));
        rows_.push_back(count_node(graph, node, counted));
        add(total_, rows_.back());
    }
}

}  // namespace hpcai::metrics
