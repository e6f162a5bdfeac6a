// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hpcai/ops/flops.hpp>
#include <hpcai/ops/operation.hpp>
#include <hpcai/tensor/dtype.hpp>
#include <hpcai/tensor/shape.hpp>

namespace hpcai::graph {

using ValueId = std::int32_t;
using NodeId = std::int32_t;
using ParameterId = std::int32_t;
inline constexpr NodeId kNoNode = -1;

/// How a parameter starts, and whether weight decay acts on it.
enum class ParameterKind { filters, norm_scale, norm_shift, linear_weight, bias };

/// Which channels of a model's tensor one has that is a part of it.
struct ChannelSlice {
    int axis = 0;
    std::int64_t first = 0;
    std::int64_t channels = 0;  // of the model's tensor
};

/// A trained tensor, which several nodes may share; `name` is torchvision's
/// ("layer1.0.conv1.weight").
struct Parameter {
    std::string name;
    tensor::Shape shape;  // filters (K, R, S, C); linear (F, C); the rest (C)
    ParameterKind kind = ParameterKind::filters;
    bool starts_at_zero = false;  // zero-gamma of a residual block's last normalization
    bool is_trained = true;       // false: stays as it starts
    double deviation = 0;         // of the normal distribution it starts from; 0: by its kind
    // Of a linear weight: its columns are (pixels, channels), torchvision's (channels, pixels).
    std::int64_t pixels = 1;
    std::optional<ChannelSlice> slice;  // absent: it is the model's
};

/// Running statistics of one BatchNorm: `name`.running_mean and `name`.running_var, (C) each.
struct NormStatistics {
    std::string name;
    std::int64_t channels = 0;
    std::int64_t first_channel = 0;  // of the model's
};

struct Value {
    std::string name;
    tensor::Shape shape;
    NodeId producer = kNoNode;  // kNoNode: fed from outside
    // Absent: the type that the network computes in.
    std::optional<tensor::DType> dtype;
    bool is_received = false;  // fed from outside, as a network of another stage keeps it
};

struct Node {
    std::string name;
    ops::Operation operation;
    std::vector<ValueId> inputs;
    ValueId output = -1;
    std::vector<ParameterId> parameters;  // in the order the operation names them
    std::int32_t statistics = -1;         // index of its NormStatistics, if it has a BatchNorm
    std::int32_t inner_statistics = -1;   // of the inner one, DualNorm only
};

/// The DAG of a model: nodes in an order in which each comes after what it reads. It knows no
/// device; FLOPs, backward order, fusion and memory are all derived from it.
class Graph {
public:
    /// A value fed from outside, such as the pixels.
    ValueId add_input(std::string name, tensor::Shape shape, tensor::DType dtype);
    /// A value that a stage before this one makes; see cut().
    ValueId add_received(const Value& value, bool needs_gradient);
    /// Says that `value` is read outside the graph, where its gradient comes from, too.
    void add_output(ValueId value) { outputs_.push_back(value); }
    ParameterId add_parameter(Parameter parameter);
    std::int32_t add_statistics(NormStatistics statistics);
    /// Appends a node. Throws Error(internal) when the values are not as many, or not of the
    /// shapes, as the operation reads.
    ValueId add_node(std::string name, ops::Operation operation, std::vector<ValueId> inputs,
                     std::vector<ParameterId> parameters = {}, std::int32_t statistics = -1);
    /// The same; what `node` says of its output does not matter.
    ValueId add_node(Node node);

    const std::vector<Node>& nodes() const noexcept { return nodes_; }
    const std::vector<Value>& values() const noexcept { return values_; }
    const std::vector<Parameter>& parameters() const noexcept { return parameters_; }
    const std::vector<NormStatistics>& statistics() const noexcept { return statistics_; }
    const std::vector<ValueId>& outputs() const noexcept { return outputs_; }
    const Value& value(ValueId id) const { return values_.at(static_cast<std::size_t>(id)); }

    /// Nodes that read `value`, in order.
    std::vector<NodeId> consumers(ValueId value) const;
    /// The node that alone reads `value`; kNoNode where there is none, or somebody outside does.
    NodeId only_consumer(ValueId value) const;
    /// The value with this name. Throws Error(internal) when there is none.
    ValueId find(const std::string& name) const;
    /// True when no trained parameter lies at or before the node's inputs: its input gradient is
    /// never needed.
    bool is_first_layer(const Node& node) const;
    /// Whether it takes part in training beyond its forward pass: a trained parameter lies in the
    /// node or before it.
    bool is_trained(const Node& node) const;
    /// Whether a trained parameter has a part in it through which gradients pass.
    bool needs_gradient(ValueId value) const {
        return needs_gradient_.at(static_cast<std::size_t>(value));
    }
    std::int64_t parameter_count() const;

private:
    std::vector<Node> nodes_;
    std::vector<Value> values_;
    std::vector<Parameter> parameters_;
    std::vector<NormStatistics> statistics_;
    std::vector<ValueId> outputs_;
    std::vector<bool> needs_gradient_;  // per value
};

/// FLOPs of one node for the graph's batch; one that is not trained has a forward pass only.
ops::Flops flops(const Graph& graph, const Node& node, ops::Ledger ledger);
/// Sum of the nodes' FLOPs.
ops::Flops flops(const Graph& graph, ops::Ledger ledger);

/// The same graph with BatchNorm + Add + ReLU chains, and those of a normalization and a ReLU,
/// joined into one node where nothing else reads the values between. Numbers change only by
/// roundings that vanish.
Graph fuse(const Graph& graph);

}  // namespace hpcai::graph
