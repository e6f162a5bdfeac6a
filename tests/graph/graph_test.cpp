// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

#include "graph/graphs.hpp"

namespace hpcai::graph {
namespace {

TEST(Graph, KnowsWhoReadsAValue) {
    const Graph graph = every_operation();
    const auto readers = graph.consumers(graph.find("pool"));
    ASSERT_EQ(readers.size(), 3u);
    EXPECT_EQ(graph.nodes()[static_cast<std::size_t>(readers[0])].name, "conv1");
    EXPECT_EQ(graph.nodes()[static_cast<std::size_t>(readers[1])].name, "conv2");
    EXPECT_EQ(graph.nodes()[static_cast<std::size_t>(readers[2])].name, "add2");
    EXPECT_TRUE(graph.consumers(graph.find("loss")).empty());
}

TEST(Graph, FindsValuesByNameAndRejectsUnknownNames) {
    const Graph graph = every_operation();
    EXPECT_EQ(graph.value(graph.find("images")).producer, kNoNode);
    EXPECT_EQ(graph.value(graph.find("conv0")).shape, (tensor::Shape{4, 9, 8, 16}));
    EXPECT_THROW(graph.find("conv9"), Error);
}

TEST(Graph, HasOneFirstLayerWithParameters) {
    const Graph graph = every_operation();
    for (const Node& node : graph.nodes()) {
        EXPECT_EQ(graph.needs_no_input_gradient(node),
                  node.name == "normalize" || node.name == "conv0")
            << node.name;
    }
}

TEST(Graph, CountsParametersAndFlopsOfAllNodes) {
    const Graph graph = every_operation();
    EXPECT_EQ(graph.parameter_count(), 16 * 27 + 16 * 144 + 16 * 16 + 3 * 32 + 5 * 16 + 5);
    const std::int64_t pooled = std::int64_t{4} * 5 * 4;
    const std::int64_t products = std::int64_t{4} * 72 * 16 * 27 + pooled * 16 * (144 + 16) + 320;
    EXPECT_EQ(flops(graph, ops::Ledger::two_mac).forward, 2 * products);
}

TEST(Graph, RejectsANodeThatDescribesAnotherInput) {
    GraphMaker make;
    const ValueId x = make.images({2, 4, 4, 3});
    EXPECT_THROW(make.graph.add_node("relu", ops::Relu{{2, 4, 4, 5}}, {x}), Error);
    EXPECT_THROW(make.graph.add_node("relu", ops::Relu{{2, 4, 4, 3}}, {}), Error);
}

TEST(Graph, RejectsAnotherNumberOfInputsThanTheOperationReads) {
    GraphMaker make;
    const ValueId x = make.convolution("conv", make.images({2, 4, 4, 3}), 8);
    const tensor::Shape shape = make.shape(x);
    EXPECT_THROW(make.graph.add_node("relu", ops::Relu{shape}, {x, x}), Error);
    EXPECT_THROW(make.graph.add_node("add", ops::Add{shape}, {x}), Error);
    EXPECT_THROW(make.graph.add_node("norm", ops::BatchNorm{.input = shape, .relu = true}, {x, x}),
                 Error);
    EXPECT_THROW(
        make.graph.add_node("norm", ops::BatchNorm{.input = shape, .add = true, .relu = true}, {x}),
        Error);
}

TEST(Graph, RejectsAdditionsOfDifferentShapes) {
    GraphMaker make;
    const ValueId x = make.convolution("conv", make.images({2, 4, 4, 3}), 8);
    const ValueId wide = make.convolution("wide", x, 16);
    EXPECT_THROW(make.add("add", x, wide), Error);
}

TEST(Graph, RejectsLabelsOfAnotherBatch) {
    GraphMaker make;
    const ValueId logits = make.graph.add_input("logits", {4, 3}, tensor::DType::f32);
    const ValueId labels = make.graph.add_input("labels", {5}, tensor::DType::s32);
    EXPECT_THROW(make.graph.add_node("loss", ops::SoftmaxCrossEntropy{{4, 3}}, {logits, labels}),
                 Error);
}

}  // namespace
}  // namespace hpcai::graph
