// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include <hpcai/config/reader.hpp>
#include <hpcai/models/make_model.hpp>

#include "models/networks.hpp"
#include "support/network_runner.hpp"

namespace hpcai::models {
namespace {

using graph::Graph;
using graph::Inputs;
using graph::Tensors;
using naive::Tensor;

SegmentationNet small() {
    return {.batch = 2,
            .image_height = 40,
            .image_width = 64,
            .channels = 3,
            .classes = 3,
            .max_boxes = 2,
            .input = {tensor::DType::f32, {}, {}},
            .backbone = {.width = 8, .blocks = {1, 1, 1, 1}, .zero_gamma = false},
            .pyramid_channels = 16,
            .background_weight = 0.5};
}

/// Returns random fields with one or two boxes each.
Inputs fields_and_boxes(const Graph& graph) {
    naive::Random random(tensor::DType::f32, 31);
    Tensor boxes({2, 2, 5});
    boxes.values = {8, 8, 40, 32, 1, 16, 16, 30, 30, 2, 0, 0, 64, 20, 2, 0, 0, 0, 0, 0};
    return {{"images", random.normal(graph.value(graph.find("images")).shape)}, {"boxes", boxes}};
}

TEST(SegmentationNet, GivesAClassToEachCellOf8x8Pixels) {
    SegmentationNet options;
    EXPECT_EQ(options.cell_rows(), 96);
    EXPECT_EQ(options.cell_columns(), 144);
    options.image_height = 41;  // a partial cell counts as a cell
    options.image_width = 70;
    const Graph graph = make_segmentation_net(options);
    EXPECT_EQ(graph.value(graph.find("head.bias")).shape, (tensor::Shape{1, 6, 9, 5}));
    EXPECT_EQ(graph.values().back().shape, (tensor::Shape{1, 54, 5}));
}

TEST(SegmentationNet, AgreesWithTheNaiveNetwork) {
    tests::LargestError error("small segmentation network, unfused and fused", 1e-4);
    const Graph graph = make_segmentation_net(small());
    const Inputs inputs = fields_and_boxes(graph);
    const Tensors parameters = graph::random_parameters(graph);
    const auto want = naive::Network(graph).run(inputs, parameters, 0.5);
    for (const Graph& variant : {graph, graph::fuse(graph)}) {
        graph::NetworkRunner runner(variant);
        runner.set_parameters(parameters);
        graph::add_step(error, runner.step(inputs, 0.5f), want, graph);
    }
}

/// Together with the previous test, this shows that the engine's gradients are the slopes of the
/// loss.
TEST(SegmentationNet, HasTheGradientsOfCentralDifferencesInDouble) {
    constexpr double kStep = 5e-7;
    const Graph graph = make_segmentation_net(small());
    const Inputs inputs = fields_and_boxes(graph);
    const Tensors parameters = graph::random_parameters(graph);
    naive::Network network(graph);
    const Tensors gradients = network.run(inputs, parameters, 1).gradients;
    tests::LargestError error("gradients of the naive segmentation network, double", 5e-7);
    for (std::size_t id = 0; id < parameters.size(); ++id) {
        double square = 0;
        for (const double value : gradients[id].values) square += value * value;
        const double length = std::sqrt(square);
        ASSERT_GT(length, 0) << graph.parameters()[id].name;
        const auto loss_at = [&](double distance) {
            Tensors moved = parameters;
            for (std::size_t i = 0; i < moved[id].values.size(); ++i) {
                moved[id].values[i] += distance * gradients[id].values[i] / length;
            }
            return network.loss(inputs, moved);
        };
        const double slope = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
        error.add(std::abs(slope - length) / length, graph.parameters()[id].name);
    }
}

TEST(SegmentationNet, IsWhatTheConfigurationNamesAndHasOneClassMore) {
    const config::Config config = config::parse(
        "workload: {kind: climate_segmentation, model: segmentation_net, classes: 4, "
        "channels: 16, image_size: 128, image_width: 192}\n"
        "bagging: {out_of_bag: false}\ndata: {kind: climate_synthetic}\n",
        "f.yaml", {});
    const Graph graph = make_model(config, {.batch = 2});
    EXPECT_EQ(graph.values().back().shape, (tensor::Shape{2, 16 * 24, 5}));
    const CellGrid grid = cell_grid(config);
    EXPECT_EQ(grid.rows, 16);
    EXPECT_EQ(grid.columns, 24);
    EXPECT_EQ(grid.pixels, 8);
}

}  // namespace
}  // namespace hpcai::models
