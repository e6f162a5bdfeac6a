// SPDX-License-Identifier: Apache-2.0
#include "rebuild.hpp"

namespace hpcai::morphs {
namespace {

using graph::ParameterId;

/// Copies the nodes of a parent one after the other.
class Copier {
public:
    Copier(const graph::Graph& parent, const Changes& changes)
        : parent_(parent),
          changes_(changes),
          builder_(parent),
          values_(parent.values().size(), -1),
          parameters_(parent.parameters().size(), -1),
          statistics_(parent.statistics().size(), -1) {}

    Child run() {
        copy_inputs();
        for (std::size_t id = 0; id < parent_.nodes().size(); ++id) {
            const auto node = static_cast<NodeId>(id);
            copy(node);
            if (node != changes_.after) continue;
            ValueId& value = values_[parent_.nodes()[id].output];
            value = changes_.insert(builder_, value, [&](ValueId old) { return values_[old]; });
        }
        for (const ValueId output : parent_.outputs()) graph().add_output(values_[output]);
        return std::move(builder_.child());
    }

private:
    graph::Graph& graph() { return builder_.child().graph; }

    void copy_inputs() {
        for (std::size_t id = 0; id < values_.size(); ++id) {
            const graph::Value& value = parent_.values()[id];
            if (value.producer != graph::kNoNode) continue;
            values_[id] = graph().add_input(value.name, value.shape, value.dtype.value());
        }
    }

    void copy(NodeId id) {
        graph::Node node = parent_.nodes()[id];
        if (const auto found = changes_.operations.find(id); found != changes_.operations.end()) {
            node.operation = found->second;
        }
        const ValueId old_output = node.output;
        for (ValueId& input : node.inputs) input = values_[input];
        for (ParameterId& parameter : node.parameters) parameter = copied_parameter(parameter);
        if (node.statistics >= 0) node.statistics = copied_statistics(node.statistics);
        set_input_shape(node);
        values_[old_output] = graph().add_node(std::move(node));
    }

    void set_input_shape(graph::Node& node) {
        std::visit(
            [&](auto& operation) {
                if constexpr (requires { operation.input = tensor::Shape(); }) {
                    operation.input = builder_.shape(node.inputs.front());
                }
            },
            node.operation);
    }

    ParameterId copied_parameter(ParameterId old) {
        if (parameters_[old] >= 0) return parameters_[old];
        graph::Parameter parameter = parent_.parameters()[old];
        Origin origin{Inheritance::copied, old, {}};
        if (const auto found = changes_.parameters.find(old); found != changes_.parameters.end()) {
            parameter.shape = found->second.shape;
            origin = found->second.origin;
        }
        builder_.child().parameters.push_back(std::move(origin));
        return parameters_[old] = graph().add_parameter(std::move(parameter));
    }

    std::int32_t copied_statistics(std::int32_t old) {
        if (statistics_[old] >= 0) return statistics_[old];
        graph::NormStatistics statistics = parent_.statistics()[old];
        Origin origin{Inheritance::copied, old, {}};
        if (const auto found = changes_.statistics.find(old); found != changes_.statistics.end()) {
            origin = found->second;
            statistics.channels = std::ssize(origin.channels);
        }
        builder_.child().statistics.push_back(std::move(origin));
        return statistics_[old] = graph().add_statistics(std::move(statistics));
    }

    const graph::Graph& parent_;
    const Changes& changes_;
    Builder builder_;
    std::vector<ValueId> values_;           // [the parent's value]; -1: not yet copied
    std::vector<ParameterId> parameters_;   // [the parent's parameter], likewise
    std::vector<std::int32_t> statistics_;  // [the parent's statistics], likewise
};

}  // namespace

Builder::Builder(const graph::Graph& parent) {
    if (const ops::BatchNorm* norm = plain_norm(parent); norm != nullptr) norm_ = *norm;
}

graph::ParameterId Builder::parameter(graph::Parameter parameter, Inheritance rule) {
    child_.parameters.push_back({rule, -1, {}});
    return child_.graph.add_parameter(std::move(parameter));
}

ValueId Builder::convolution(const std::string& name, ValueId input, std::int64_t filters,
                             Window window, Inheritance rule) {
    const auto [kernel, stride] = window;
    const tensor::Shape image = shape(input);
    const auto weight = parameter({.name = name + ".weight",
                                   .shape = {filters, kernel, kernel, image[3]},
                                   .kind = graph::ParameterKind::filters},
                                  rule);
    return child_.graph.add_node(name, ops::Convolution{image, filters, kernel, stride, kernel / 2},
                                 {input}, {weight});
}

ValueId Builder::norm(const std::string& name, ValueId input, bool starts_at_zero) {
    const tensor::Shape image = shape(input);
    const auto scale = parameter({.name = name + ".weight",
                                  .shape = {image[3]},
                                  .kind = graph::ParameterKind::norm_scale,
                                  .starts_at_zero = starts_at_zero});
    const auto shift = parameter(
        {.name = name + ".bias", .shape = {image[3]}, .kind = graph::ParameterKind::norm_shift});
    child_.statistics.push_back({Inheritance::initial, -1, {}});
    const auto statistics = child_.graph.add_statistics({name, image[3]});
    ops::BatchNorm operation = norm_;
    operation.input = image;
    return child_.graph.add_node(name, operation, {input}, {scale, shift}, statistics);
}

ValueId Builder::relu(const std::string& name, ValueId input) {
    return child_.graph.add_node(name, ops::Relu{shape(input)}, {input});
}

ValueId Builder::add(const std::string& name, ValueId a, ValueId b) {
    return child_.graph.add_node(name, ops::Add{shape(a)}, {a, b});
}

Child rebuild(const graph::Graph& parent, const Changes& changes) {
    return Copier(parent, changes).run();
}

}  // namespace hpcai::morphs
