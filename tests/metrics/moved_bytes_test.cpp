// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/metrics/ledger.hpp>

namespace hpcai::metrics {
namespace {

using ops::Pass;
using tensor::DType;

struct OneNode {
    graph::Graph graph;
    double bytes(Pass pass, DType compute) const {
        return moved_bytes(graph, graph.nodes().back(), pass, compute);
    }
};

/// Returns (2, 4, 4, 3) images, 5 filters of 3 x 3 with padding: 96 inputs, 135 filter weights, 160
/// outputs.
OneNode convolution() {
    OneNode one;
    const auto image = one.graph.add_received({"image", {2, 4, 4, 3}}, true);
    const auto filters = one.graph.add_parameter({.name = "w", .shape = {5, 3, 3, 3}});
    one.graph.add_node("conv", ops::Convolution{{2, 4, 4, 3}, 5, 3, 1, 1}, {image}, {filters});
    return one;
}

TEST(MovedBytes, OfAConvolutionAreItsImagesFiltersAndGradients) {
    const OneNode conv = convolution();
    EXPECT_EQ(conv.bytes(Pass::forward, DType::f32), 4 * (96 + 135 + 160));
    EXPECT_EQ(conv.bytes(Pass::input_gradient, DType::f32), 4 * (160 + 135 + 96));
    EXPECT_EQ(conv.bytes(Pass::weight_gradient, DType::f32), 4 * (96 + 160 + 135));
}

TEST(MovedBytes, HalveInBf16ExceptForGradientsOfParameters) {
    const OneNode conv = convolution();
    EXPECT_EQ(conv.bytes(Pass::forward, DType::bf16), 2 * (96 + 135 + 160));
    EXPECT_EQ(conv.bytes(Pass::weight_gradient, DType::bf16), 2 * (96 + 160) + 4 * 135);
    EXPECT_EQ(conv.bytes(Pass::prepare, DType::bf16), (4 + 2) * 135);
}

TEST(MovedBytes, OfTheFirstLayerHaveNoGradientOfTheImage) {
    graph::Graph graph;
    const auto image = graph.add_received({"image", {1, 2, 2, 1}}, false);
    const auto filters = graph.add_parameter({.name = "w", .shape = {1, 1, 1, 1}});
    graph.add_node("conv", ops::Convolution{{1, 2, 2, 1}, 1}, {image}, {filters});
    EXPECT_EQ(moved_bytes(graph, graph.nodes().front(), Pass::input_gradient, DType::f32),
              4 * (4 + 1));
}

/// Returns a graph of one norm of an image (2, 4, 4, 3), alone or fused with other operations.
graph::Graph graph_of_norm(const ops::Operation& norm) {
    graph::Graph graph;
    const auto image = graph.add_received({"image", {2, 4, 4, 3}}, true);
    const auto scale =
        graph.add_parameter({.name = "g", .shape = {3}, .kind = graph::ParameterKind::norm_scale});
    const auto shift =
        graph.add_parameter({.name = "b", .shape = {3}, .kind = graph::ParameterKind::norm_shift});
    graph.add_node("bn", norm, {image}, {scale, shift}, graph.add_statistics({"bn", 3}));
    return graph;
}

TEST(MovedBytes, OfTheGradientOfANormIncludeItsImage) {
    const graph::Graph graph = graph_of_norm(ops::BatchNorm{.input = {2, 4, 4, 3}});
    const graph::Node& node = graph.nodes().front();
    EXPECT_EQ(moved_bytes(graph, node, Pass::forward, DType::bf16), 2 * (96 + 96) + 4 * 6);
    EXPECT_EQ(moved_bytes(graph, node, Pass::input_gradient, DType::bf16),
              2 * (96 + 96 + 96) + 4 * 6);
}

TEST(MovedBytes, OfANormWithPoolingIncludeTheImageButNotTheNormalizedImage) {
    const ops::BatchNorm norm{.input = {2, 4, 4, 3}, .relu = true};
    const graph::Graph graph = graph_of_norm(ops::NormPool{norm, {norm.input, 3, 2, 1}});
    const graph::Node& node = graph.nodes().front();
    EXPECT_EQ(moved_bytes(graph, node, Pass::forward, DType::bf16), 2 * (96 + 24) + 4 * 6);
    EXPECT_EQ(moved_bytes(graph, node, Pass::input_gradient, DType::bf16),
              2 * (24 + 96 + 96) + 4 * 6);
}

}  // namespace
}  // namespace hpcai::metrics
