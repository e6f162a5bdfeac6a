// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include <hpcai/morphs/inherit.hpp>

#include "support/network_runner.hpp"

/// Logits of classifiers with random weights.
namespace hpcai::morphs {

/// Copies the logits when they are computed.
class LogitsObserver : public graph::Observer {
public:
    explicit LogitsObserver(const graph::Network& network) : network_(network) {}
    void after(const graph::KernelCall& call) override {
        if (call.name != "fc" || call.pass != ops::Pass::forward) return;
        const std::span<const std::byte> value = network_.value("fc");
        logits.resize(value.size() / sizeof(float));
        std::memcpy(logits.data(), value.data(), value.size());
    }

    std::vector<float> logits;

private:
    const graph::Network& network_;
};

/// A model with weights.
struct Model {
    graph::Graph graph;
    Weights weights;
};

/// Weights of a trained model: no gamma is zero, and running statistics differ by channel.
inline Weights random_weights(const graph::Graph& graph, std::uint32_t stream) {
    naive::Random random(tensor::DType::f32, stream);
    const auto draw = [&](const tensor::Shape& shape, double mean, double deviation) {
        const auto values = random.normal(shape, mean, deviation).values;
        return std::vector<float>(values.begin(), values.end());
    };
    Weights weights;
    for (const graph::Parameter& parameter : graph.parameters()) {
        const auto inputs = static_cast<double>(parameter.shape.elements() / parameter.shape[0]);
        const bool is_matrix = parameter.shape.rank() > 1;
        const double mean = parameter.kind == graph::ParameterKind::norm_scale ? 1 : 0;
        weights.parameters.push_back(
            draw(parameter.shape, mean, is_matrix ? std::sqrt(2 / inputs) : 0.2));
    }
    for (const graph::NormStatistics& statistics : graph.statistics()) {
        weights.running_means.push_back(draw({statistics.channels}, 0, 0.2));
        weights.running_variances.push_back(draw({statistics.channels}, 1, 0.05));
    }
    return weights;
}

inline std::vector<float> logits(const Model& model, device::Mode mode) {
    graph::NetworkRunner runner(model.graph, device::make_cpu_device({1}),
                                {mode, tensor::DType::f32});
    write_weights(model.weights, model.graph, runner.store);
    graph::NetworkRunner::set_inputs(runner.network, graph::random_inputs(model.graph));
    runner.network.reset_step_scalars(1);
    graph::Observer nobody;
    LogitsObserver observer(runner.network);
    runner.network.prepare(nobody);
    runner.network.forward(observer);
    return observer.logits;
}

}  // namespace hpcai::morphs
