// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/flops.hpp>

namespace hpcai::graph {

using ValueId = std::int32_t;
using NodeId = std::int32_t;
using ParameterId = std::int32_t;
inline constexpr NodeId kNoNode = -1;

/// Determines how a parameter is initialized, and whether weight decay applies to it.
enum class ParameterKind { filters, norm_scale, norm_shift, linear_weight, bias };

/// The position of a tensor-parallel shard's channels in the model's tensor.
struct ChannelSlice {
    int axis = 0;
    std::int64_t first = 0;
    std::int64_t channels = 0;  // of the full tensor; Parameter::shape has those of the shard
};

/// A parameter, which several nodes may share. `name` is as in torchvision
/// ("layer1.0.conv1.weight") if torchvision has the model.
struct Parameter {
    std::string name;
    tensor::Shape shape;  // filters (K, R, S, C); linear (F, C); others (C)
    ParameterKind kind = ParameterKind::filters;
    bool starts_at_zero = false;  // norm_scale: 0 initially, at the end of a residual block
    bool is_trained = true;       // false: keeps its initial value
    double deviation = 0;         // standard deviation of initial values; 0: determined by `kind`
    // Pixels of the feature map that a linear layer flattens. The weight's columns are ordered
    // (pixels, channels); torchvision orders them (channels, pixels).
    std::int64_t pixels = 1;
    std::optional<ChannelSlice> slice;  // absent: all channels
};

/// Running statistics of one BatchNorm: `name`.running_mean and `name`.running_var, (C) each.
struct NormStatistics {
    std::string name;
    std::int64_t channels = 0;
    std::int64_t first_channel = 0;  // index of the shard's first channel in the model
};

/// A tensor of the graph: an input or the output of a node.
struct Value {
    std::string name;
    tensor::Shape shape;
    NodeId producer = kNoNode;           // kNoNode: an input
    std::optional<tensor::DType> dtype;  // absent: the compute type of the network
    bool is_received = false;            // from an earlier pipeline stage, in device layout
};

/// One operation of a model.
struct Node {
    std::string name;
    ops::Operation operation;
    std::vector<ValueId> inputs;
    ValueId output = -1;
    std::vector<ParameterId> parameters;  // in the order that the operation defines
    std::int32_t statistics = -1;         // index in Graph::statistics(); -1: no BatchNorm
    std::int32_t inner_statistics = -1;   // likewise, of the second BatchNorm of an ops::DualNorm
};

/// The DAG of a model, in topological order. A graph is independent of devices; FLOPs, backward
/// order, fusion and memory are derived from it.
class Graph {
public:
    /// Adds an input, such as the pixels.
    ValueId add_input(std::string name, tensor::Shape shape, tensor::DType dtype) {
        return add_value({std::move(name), shape, kNoNode, dtype, false}, false);
    }
    /// Adds a value that an earlier pipeline stage computes; see partition_stages().
    ValueId add_received(const Value& value, bool needs_gradient) {
        return add_value({value.name, value.shape, kNoNode, value.dtype, true}, needs_gradient);
    }
    /// Marks `value` as read outside the graph. The reader provides its gradient if it needs one.
    void add_output(ValueId value) { outputs_.push_back(value); }
    ParameterId add_parameter(Parameter parameter);
    std::int32_t add_statistics(NormStatistics statistics);
    /// Appends a node. Throws Error(internal) if the number or the shapes of `inputs` do not match
    /// the operation.
    ValueId add_node(std::string name, ops::Operation operation, std::vector<ValueId> inputs,
                     std::vector<ParameterId> parameters = {}, std::int32_t statistics_index = -1);
    /// Appends `node` like the other add_node(); the graph sets node.output.
    ValueId add_node(Node node);

    const std::vector<Node>& nodes() const noexcept { return nodes_; }
    const std::vector<Value>& values() const noexcept { return values_; }
    const std::vector<Parameter>& parameters() const noexcept { return parameters_; }
    const std::vector<NormStatistics>& statistics() const noexcept { return statistics_; }
    const std::vector<ValueId>& outputs() const noexcept { return outputs_; }
    const Value& value(ValueId id) const { return values_.at(static_cast<std::size_t>(id)); }

    /// Nodes that read `value`, in order.
    std::vector<NodeId> consumers(ValueId value) const;
    /// The only node that reads `value`; kNoNode for no or several readers, and for an output.
    NodeId only_consumer(ValueId value) const;
    /// Throws Error(internal) when no value has this name.
    ValueId find(const std::string& name) const;
    /// Whether no input of the node needs a gradient (needs_gradient()).
    bool needs_no_input_gradient(const Node& node) const;
    /// Whether a parameter of the node is trained or an input needs a gradient. Such a node has a
    /// backward pass if its operation is differentiable.
    bool is_trained(const Node& node) const;
    /// Whether `value` depends on a trained parameter by a differentiable path.
    bool needs_gradient(ValueId value) const {
        return needs_gradient_.at(static_cast<std::size_t>(value));
    }
    /// The number of elements of all parameters, trained or not.
    std::int64_t parameter_count() const;

private:
    ValueId add_value(Value value, bool needs_gradient);

    std::vector<Node> nodes_;
    std::vector<Value> values_;
    std::vector<Parameter> parameters_;
    std::vector<NormStatistics> statistics_;
    std::vector<ValueId> outputs_;
    std::vector<bool> needs_gradient_;  // per value
};

/// FLOPs of one node for the batch of the graph, by the counting rules of `ledger`. An untrained
/// node has a forward pass only.
ops::Flops flops(const Graph& graph, const Node& node, ops::Ledger ledger);
ops::Flops flops(const Graph& graph, ops::Ledger ledger);

/// Returns a copy of the graph in which each of these sequences is one node, if no other node reads
/// its intermediate values: BatchNorm, Add, ReLU; BatchNorm, ReLU; GroupNorm, ReLU. Results change
/// only because intermediate values are no longer rounded.
Graph fuse(const Graph& graph);

}  // namespace hpcai::graph
