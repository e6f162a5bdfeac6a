// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/device/cpu_device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/reference/naive_network.hpp>
#include <hpcai/reference/naive_random.hpp>

#include "support/largest_error.hpp"
#include "support/losses.hpp"
#include "support/optimizer_steps.hpp"

namespace hpcai::graph {

using Tensors = std::vector<naive::Tensor>;
using Inputs = std::map<std::string, naive::Tensor>;

/// Returns parameters with the magnitudes of initial weights, without special values.
inline Tensors random_parameters(const Graph& graph) {
    naive::Random random(tensor::DType::f32, 20);
    Tensors all;
    for (const Parameter& parameter : graph.parameters()) {
        const auto inputs = static_cast<double>(parameter.shape.elements() / parameter.shape[0]);
        const bool matrix = parameter.shape.rank() > 1;
        const double mean = parameter.kind == ParameterKind::norm_scale ? 1 : 0;
        all.push_back(random.normal(parameter.shape, mean, matrix ? std::sqrt(2 / inputs) : 0.2));
    }
    return all;
}

/// Returns random pixels and labels for the graph's inputs "images" and "labels".
inline Inputs random_inputs(const Graph& graph, std::uint32_t stream = 21) {
    naive::Random random(tensor::DType::f32, stream);
    const auto classes = graph.value(graph.nodes().back().output).shape[1];
    return {{"images", random.below(graph.value(graph.find("images")).shape, 256)},
            {"labels", random.below(graph.value(graph.find("labels")).shape,
                                    static_cast<std::uint32_t>(classes))}};
}

struct RunnerOptions {
    tensor::DType compute = tensor::DType::f32;
    device::CpuLayout layout = device::CpuLayout::automatic;
    int threads = 1;
    bool deterministic = false;
};

/// A network with a separate store, on the CPU engine or on a given device.
class NetworkRunner {
public:
    explicit NetworkRunner(const Graph& graph, const RunnerOptions& options = {})
        : NetworkRunner(
              graph,
              device::make_cpu_device({options.threads, options.layout, options.deterministic}),
              {device::Mode::training, options.compute}) {}
    NetworkRunner(const Graph& graph, std::unique_ptr<device::Device> on,
                  const NetworkOptions& options)
        : device(std::move(on)), store(graph, *device), network(graph, *device, store, options) {}

    static void set_inputs(Network& network, const Inputs& inputs) {
        for (const auto& [name, tensor] : inputs) {
            const auto dtype = network.graph().value(network.graph().find(name)).dtype;
            if (dtype == tensor::DType::u8) set_input<std::uint8_t>(network, name, tensor);
            if (dtype == tensor::DType::s32) set_input<std::int32_t>(network, name, tensor);
            if (dtype == tensor::DType::f32) set_input<float>(network, name, tensor);
        }
    }
    template <typename Number>
    static void set_input(Network& network, const std::string& name, const naive::Tensor& tensor) {
        const std::vector<Number> numbers(tensor.values.begin(), tensor.values.end());
        network.set_input(name, std::as_bytes(std::span(numbers)));
    }

    void set_parameters(const Tensors& parameters) {
        for (std::size_t id = 0; id < parameters.size(); ++id) {
            const auto& values = parameters[id].values;
            store.write(std::vector<float>(values.begin(), values.end()),
                        store.parameter(static_cast<ParameterId>(id)));
        }
    }

    /// Runs one step without update. Gradients start as NaN, so that a missing write is detected.
    naive::NetworkResult step(const Inputs& inputs, float loss_scale = 1) {
        Observer nobody;
        const auto gradients = store.gradients();
        store.write(std::vector<float>(gradients.size(), std::numeric_limits<float>::quiet_NaN()),
                    gradients);
        set_inputs(network, inputs);
        network.reset_step_scalars(loss_scale);
        network.prepare(nobody);
        network.forward(nobody);
        network.backward(nobody);
        naive::NetworkResult result = read(network);
        for (std::size_t id = 0; id < store.ranges().size(); ++id) {
            const auto from = store.read(store.gradient(static_cast<ParameterId>(id)));
            naive::Tensor gradient(network.graph().parameters()[id].shape);
            std::copy(from.begin(), from.end(), gradient.values.begin());
            result.gradients.push_back(std::move(gradient));
        }
        return result;
    }

    /// Runs the first step of an optimizer on all parameters.
    void update(const device::Optimizer& optimizer, double learning_rate) {
        device::OptimizerSteps(*device, optimizer,
                               {store.parameters(), store.gradients(), {store.state(0)}, nullptr})
            .step(learning_rate);
    }

    /// Returns losses and probabilities of the last forward pass of a network on this device.
    naive::NetworkResult read(const Network& of) const {
        const tensor::Shape shape = of.graph().values().back().shape;
        const std::vector<float> losses = read_losses(*device, of);
        std::vector<float> probabilities(static_cast<std::size_t>(shape.elements()));
        of.read_output(probabilities);
        return {{losses.begin(), losses.end()}, {probabilities.begin(), probabilities.end()}, {}};
    }

    /// Returns the sum of the rows' losses after a forward pass.
    double loss(const Inputs& inputs) {
        Observer nobody;
        set_inputs(network, inputs);
        network.prepare(nobody);
        network.forward(nobody);
        double total = 0;
        for (const double row : read(network).losses) total += row;
        return total;
    }

    std::unique_ptr<device::Device> device;
    ParameterStore store;
    Network network;
};

/// Returns the Euclidean distance relative to the length of `want`.
inline double relative_distance(const std::vector<double>& got, const std::vector<double>& want) {
    EXPECT_EQ(got.size(), want.size());
    double distance = 0, length = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        distance += (got[i] - want[i]) * (got[i] - want[i]);
        length += want[i] * want[i];
    }
    return std::sqrt(distance / std::max(length, 1e-300));
}

/// Adds the distances of losses, probabilities and every parameter's gradient.
inline void add_step(tests::LargestError& error, const naive::NetworkResult& got,
                     const naive::NetworkResult& want, const Graph& graph) {
    error.add(relative_distance(got.losses, want.losses), "losses");
    error.add(relative_distance(got.probabilities, want.probabilities), "probabilities");
    ASSERT_EQ(got.gradients.size(), want.gradients.size());
    for (std::size_t id = 0; id < want.gradients.size(); ++id) {
        error.add(relative_distance(got.gradients[id].values, want.gradients[id].values),
                  graph.parameters()[id].name);
    }
}

/// Expects losses, probabilities and every parameter's gradient within `tolerance` of their length.
inline void expect_same_step(const naive::NetworkResult& got, const naive::NetworkResult& want,
                             const Graph& graph, double tolerance) {
    EXPECT_LT(relative_distance(got.losses, want.losses), tolerance);
    EXPECT_LT(relative_distance(got.probabilities, want.probabilities), tolerance);
    ASSERT_EQ(got.gradients.size(), want.gradients.size());
    for (std::size_t id = 0; id < want.gradients.size(); ++id) {
        EXPECT_LT(relative_distance(got.gradients[id].values, want.gradients[id].values), tolerance)
            << graph.parameters()[id].name;
    }
}

}  // namespace hpcai::graph
