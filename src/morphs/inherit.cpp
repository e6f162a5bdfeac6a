// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>
#include <hpcai/graph/initial_values.hpp>
#include <hpcai/morphs/inherit.hpp>

namespace hpcai::morphs {
namespace {

using Values = std::vector<float>;

/// The values of `channels`, indices on the first axis of `parent` (parent_channels, ...).
Values gathered(const Values& parent, const std::vector<std::int64_t>& channels,
                std::size_t parent_channels) {
    const std::size_t columns = parent.size() / parent_channels;
    Values values;
    values.reserve(columns * channels.size());
    for (const std::int64_t channel : channels) {
        const auto first = parent.begin() + channel * static_cast<std::ptrdiff_t>(columns);
        values.insert(values.end(), first, first + static_cast<std::ptrdiff_t>(columns));
    }
    return values;
}

/// Filters (K, R, S, C) padded with zeros: around the kernel, and after the input channels.
Values padded(const Values& parent, const tensor::Shape& from, const tensor::Shape& to) {
    Values values(static_cast<std::size_t>(to.elements()));
    const std::int64_t ring = (to[1] - from[1]) / 2;
    auto source = parent.begin();
    for (std::int64_t filter = 0; filter < from[0]; ++filter) {
        for (std::int64_t row = 0; row < from[1]; ++row) {
            for (std::int64_t column = 0; column < from[2]; ++column) {
                const std::int64_t pixel = (filter * to[1] + row + ring) * to[2] + column + ring;
                std::copy_n(source, from[3], values.begin() + pixel * to[3]);
                source += from[3];
            }
        }
    }
    return values;
}

/// Filters that copy each channel, times the deviation by which a BatchNorm divides at variance 1.
Values identity(const tensor::Shape& shape) {
    Values values(static_cast<std::size_t>(shape.elements()));
    const auto middle = static_cast<float>(std::sqrt(1 + ops::BatchNorm{}.epsilon));
    for (std::int64_t channel = 0; channel < shape[0]; ++channel) {
        const std::int64_t pixel = (channel * shape[1] + shape[1] / 2) * shape[2] + shape[2] / 2;
        values[static_cast<std::size_t>(pixel * shape[3] + channel)] = middle;
    }
    return values;
}

/// One edit of a parent with these weights, in a script of edits.
struct Step {
    const graph::Graph& parent;
    const Child& child;
    const Weights& weights;  // of the parent
    std::uint64_t seed = 0;
    std::uint32_t position = 0;
};

Values parameter_values(const Step& step, std::size_t index) {
    const Origin& origin = step.child.parameters[index];
    const graph::Parameter& parameter = step.child.graph.parameters()[index];
    if (origin.rule == Inheritance::initial) {
        const auto number = static_cast<std::uint32_t>(index);
        return graph::initial_values(parameter, {step.seed, step.position, number});
    }
    if (origin.rule == Inheritance::identity) return identity(parameter.shape);
    const Values& values = step.weights.parameters[origin.parent];
    const tensor::Shape& from = step.parent.parameters()[origin.parent].shape;
    if (origin.rule == Inheritance::copied) return values;
    if (origin.rule == Inheritance::padded) return padded(values, from, parameter.shape);
    return gathered(values, origin.channels, from[0]);
}

/// `parent` has the running means or variances of the parent; `initial` is the value in new norms.
std::vector<Values> statistics_values(const Child& child, const std::vector<Values>& parent,
                                      float initial) {
    std::vector<Values> all;
    for (std::size_t index = 0; index < child.statistics.size(); ++index) {
        const Origin& origin = child.statistics[index];
        if (origin.rule == Inheritance::initial) {
            all.emplace_back(child.graph.statistics()[index].channels, initial);
            continue;
        }
        const Values& values = parent[origin.parent];
        const bool is_copy = origin.rule == Inheritance::copied;
        all.push_back(is_copy ? values : gathered(values, origin.channels, values.size()));
    }
    return all;
}

Weights weights_of_child(const Step& step) {
    Weights weights;
    for (std::size_t index = 0; index < step.child.parameters.size(); ++index) {
        weights.parameters.push_back(parameter_values(step, index));
    }
    weights.running_means = statistics_values(step.child, step.weights.running_means, 0);
    weights.running_variances = statistics_values(step.child, step.weights.running_variances, 1);
    return weights;
}

void check_sizes(const Weights& weights, const graph::Graph& graph) {
    bool fits = weights.parameters.size() == graph.parameters().size() &&
                weights.running_means.size() == graph.statistics().size() &&
                weights.running_variances.size() == graph.statistics().size();
    for (std::size_t i = 0; fits && i < graph.parameters().size(); ++i) {
        fits = std::ssize(weights.parameters[i]) == graph.parameters()[i].shape.elements();
    }
    for (std::size_t i = 0; fits && i < graph.statistics().size(); ++i) {
        const std::int64_t channels = graph.statistics()[i].channels;
        fits = std::ssize(weights.running_means[i]) == channels &&
               std::ssize(weights.running_variances[i]) == channels;
    }
    ensure(fits, "the weights do not belong to this graph");
}

}  // namespace

Weights read_weights(const graph::Graph& graph, graph::ParameterStore& store) {
    Weights weights;
    for (std::size_t id = 0; id < graph.parameters().size(); ++id) {
        weights.parameters.push_back(
            store.read(store.parameter(static_cast<graph::ParameterId>(id))));
    }
    for (std::int32_t id = 0; id < std::ssize(graph.statistics()); ++id) {
        weights.running_means.push_back(store.read(store.running_mean(id)));
        weights.running_variances.push_back(store.read(store.running_variance(id)));
    }
    return weights;
}

void write_weights(const Weights& weights, const graph::Graph& graph,
                   graph::ParameterStore& store) {
    check_sizes(weights, graph);
    for (std::size_t id = 0; id < weights.parameters.size(); ++id) {
        store.write(weights.parameters[id], store.parameter(static_cast<graph::ParameterId>(id)));
    }
    for (std::int32_t id = 0; id < std::ssize(graph.statistics()); ++id) {
        store.write(weights.running_means[id], store.running_mean(id));
        store.write(weights.running_variances[id], store.running_variance(id));
    }
}

std::uint64_t child_seed(std::uint64_t run_seed, std::uint32_t group, std::uint32_t sequence) {
    return CounterStream(run_seed, RandomPurpose::inheritance, group, sequence).next_u64();
}

Weights inherit(const graph::Graph& root, std::span<const Morph> script, std::size_t inherited,
                Weights parent, std::uint64_t seed) {
    graph::Graph graph = apply_all(root, script.first(inherited));
    check_sizes(parent, graph);
    for (std::size_t index = inherited; index < script.size(); ++index) {
        const auto position = static_cast<std::uint32_t>(index);
        Child child = apply(graph, script[index], position, seed);
        parent = weights_of_child({graph, child, parent, seed, position});
        graph = std::move(child.graph);
    }
    return parent;
}

}  // namespace hpcai::morphs
