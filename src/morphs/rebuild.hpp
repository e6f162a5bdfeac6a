// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>

#include "places.hpp"

namespace hpcai::morphs {

/// Appends nodes to a child. New parameters have the origin `initial` unless stated otherwise.
class Builder {
public:
    /// New norms are like plain_norm() of `parent`, if there is one.
    explicit Builder(const graph::Graph& parent);

    Child& child() { return child_; }
    const tensor::Shape& shape(ValueId value) const { return child_.graph.value(value).shape; }

    struct Window {
        std::int64_t kernel = 1;
        std::int64_t stride = 1;
    };
    /// Adds a convolution whose padding preserves height and width at stride 1.
    ValueId convolution(const std::string& name, ValueId input, std::int64_t filters, Window window,
                        Inheritance rule = Inheritance::initial);
    ValueId norm(const std::string& name, ValueId input, bool starts_at_zero);
    ValueId relu(const std::string& name, ValueId input);
    ValueId add(const std::string& name, ValueId a, ValueId b);

private:
    graph::ParameterId parameter(graph::Parameter parameter,
                                 Inheritance rule = Inheritance::initial);

    ops::BatchNorm norm_;
    Child child_;
};

/// The new shape of a parameter and where its values are from.
struct ChangedParameter {
    tensor::Shape shape;
    Origin origin;
};

/// The differences of a child from its parent. Keys are indices of the parent's nodes, parameters
/// and statistics.
struct Changes {
    std::map<NodeId, ops::Operation> operations;  // rebuild() sets their input shapes
    std::map<graph::ParameterId, ChangedParameter> parameters;
    std::map<std::int32_t, Origin> statistics;
    // Called after node `after` is copied; the second argument is its output in the child. Adds
    // nodes and returns the value that later nodes read instead of this output. The third argument
    // returns the child's value for one of the parent.
    using ChildValue = std::function<ValueId(ValueId)>;
    std::function<ValueId(Builder&, ValueId, const ChildValue&)> insert;
    NodeId after = graph::kNoNode;
};

/// Copies `parent` with these changes. Parameters and statistics are in the order of the nodes.
Child rebuild(const graph::Graph& parent, const Changes& changes);

}  // namespace hpcai::morphs
