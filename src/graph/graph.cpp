// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/base/error.hpp>
#include <hpcai/graph/graph.hpp>

namespace hpcai::graph {

ValueId Graph::add_value(Value value, bool needs_gradient) {
    values_.push_back(std::move(value));
    needs_gradient_.push_back(needs_gradient);
    return static_cast<ValueId>(values_.size() - 1);
}

ParameterId Graph::add_parameter(Parameter parameter) {
    parameters_.push_back(std::move(parameter));
    return static_cast<ParameterId>(parameters_.size() - 1);
}

std::int32_t Graph::add_statistics(NormStatistics statistics) {
    statistics_.push_back(std::move(statistics));
    return static_cast<std::int32_t>(statistics_.size() - 1);
}

ValueId Graph::add_node(std::string name, ops::Operation operation, std::vector<ValueId> inputs,
                        std::vector<ParameterId> parameters, std::int32_t statistics_index) {
    return add_node({std::move(name), std::move(operation), std::move(inputs), -1,
                     std::move(parameters), statistics_index});
}

ValueId Graph::add_node(Node node) {
    const std::vector<tensor::Shape> expected = input_shapes(node.operation);
    ensure(node.inputs.size() == expected.size(), "node {}: expected {} inputs, got {}", node.name,
           expected.size(), node.inputs.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const Value& input = value(node.inputs[i]);
        ensure(input.shape == expected[i], "node {}: expected an input of shape {}, got {}",
               node.name, to_string(expected[i]), to_string(input.shape));
    }
    node.output =
        add_value({node.name, output_shape(node.operation), static_cast<NodeId>(nodes_.size()),
                   output_dtype(node.operation), false},
                  is_trained(node) && is_differentiable(node.operation));
    nodes_.push_back(std::move(node));
    return nodes_.back().output;
}

std::vector<NodeId> Graph::consumers(ValueId value) const {
    std::vector<NodeId> found;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
        const bool reads = std::ranges::count(nodes_[node].inputs, value) > 0;
        if (reads) found.push_back(static_cast<NodeId>(node));
    }
    return found;
}

NodeId Graph::only_consumer(ValueId value) const {
    const std::vector<NodeId> readers = consumers(value);
    const bool is_output = std::ranges::find(outputs_, value) != outputs_.end();
    return readers.size() == 1 && !is_output ? readers.front() : kNoNode;
}

ValueId Graph::find(const std::string& name) const {
    const auto found = std::ranges::find(values_, name, &Value::name);
    ensure(found != values_.end(), "the graph has no value {}", name);
    return static_cast<ValueId>(found - values_.begin());
}

bool Graph::needs_no_input_gradient(const Node& node) const {
    return std::ranges::none_of(node.inputs, [&](ValueId input) { return needs_gradient(input); });
}

bool Graph::is_trained(const Node& node) const {
    return !needs_no_input_gradient(node) ||
           std::ranges::any_of(node.parameters, [&](ParameterId parameter) {
               return parameters_.at(static_cast<std::size_t>(parameter)).is_trained;
           });
}

std::int64_t Graph::parameter_count() const {
    std::int64_t count = 0;
    for (const Parameter& parameter : parameters_) count += parameter.shape.elements();
    return count;
}

ops::Flops flops(const Graph& graph, const Node& node, ops::Ledger ledger) {
    const ops::Flops trained =
        ops::flops(node.operation, ledger, graph.needs_no_input_gradient(node));
    return graph.is_trained(node) ? trained : ops::Flops{trained.forward, 0, 0};
}

ops::Flops flops(const Graph& graph, ops::Ledger ledger) {
    ops::Flops total;
    for (const Node& node : graph.nodes()) total += flops(graph, node, ledger);
    return total;
}

}  // namespace hpcai::graph
