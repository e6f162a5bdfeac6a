// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include "models/networks.hpp"
#include "support/largest_error.hpp"
#include "support/network_runner.hpp"

/// Tests that the naive network's gradients are the slopes of its own loss, which needs no other
/// program. resnet50_training_test.cpp tests that the engine agrees with the naive network.
namespace hpcai::models {
namespace {

using graph::Graph;
using graph::Inputs;
using graph::Tensors;
using naive::Tensor;

double product(const Tensor& a, const Tensor& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.values.size(); ++i) sum += a.values[i] * b.values[i];
    return sum;
}

/// Returns a direction of length 1 from the signs of a random tensor, so that every element counts
/// equally.
Tensor signs(const tensor::Shape& shape, std::uint32_t stream) {
    naive::Random random(tensor::DType::f32, stream);
    Tensor direction = random.normal(shape);
    const double element = 1 / std::sqrt(static_cast<double>(shape.elements()));
    for (double& value : direction.values) value = std::copysign(element, value);
    return direction;
}

Tensor unit(Tensor tensor) {
    const double length = std::sqrt(product(tensor, tensor));
    for (double& value : tensor.values) value /= length;
    return tensor;
}

/// The slope of the naive loss by central differences, in double.
class Slope {
public:
    Slope(const Graph& graph, const Inputs& inputs, const Tensors& parameters)
        : network_(graph), inputs_(inputs), parameters_(parameters) {}

    double along(std::size_t id, const Tensor& direction) {
        return (loss_at(id, direction, kStep) - loss_at(id, direction, -kStep)) / (2 * kStep);
    }

private:
    // So small that no value changes its sign before a ReLU or its order in a pooling window.
    static constexpr double kStep = 5e-7;

    double loss_at(std::size_t id, const Tensor& direction, double distance) {
        Tensors moved = parameters_;
        for (std::size_t i = 0; i < direction.values.size(); ++i) {
            moved[id].values[i] += distance * direction.values[i];
        }
        return network_.loss(inputs_, moved);
    }

    naive::Network network_;
    const Inputs& inputs_;
    const Tensors& parameters_;
};

class NaiveResNet : public testing::TestWithParam<bool> {};

TEST_P(NaiveResNet, HasTheGradientsOfCentralDifferencesInDouble) {
    const Graph graph = make_resnet50(
        {.batch = 4,
         .image_size = 32,
         .classes = 3,
         .label_smoothing = 0.1,
         .backbone = {.width = 4, .blocks = {2, 1, 1, 1}, .stride_on_3x3 = GetParam()}});
    const Inputs inputs = graph::random_inputs(graph);
    const Tensors parameters = graph::random_parameters(graph);
    const Tensors gradients = naive::Network(graph).run(inputs, parameters, 1).gradients;
    Slope slope(graph, inputs, parameters);
    // The loss's last digit divided by the step is 1e-8 of a gradient; its curvature adds as much.
    tests::LargestError error("gradients of the naive ResNet, double", 5e-7);
    for (std::size_t id = 0; id < parameters.size(); ++id) {
        const std::string& name = graph.parameters()[id].name;
        const double length = std::sqrt(product(gradients[id], gradients[id]));
        ASSERT_GT(length, 0) << name;
        for (const Tensor& direction :
             {unit(gradients[id]), signs(parameters[id].shape, static_cast<std::uint32_t>(id))}) {
            const double expected = slope.along(id, direction);
            error.add(std::abs(product(gradients[id], direction) - expected) / length, name);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Of, NaiveResNet, testing::Bool(),
                         [](const auto& test) { return test.param ? "v1_5" : "v1"; });

}  // namespace
}  // namespace hpcai::models
