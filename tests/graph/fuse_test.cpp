// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <gtest/gtest.h>

#include "graph/graphs.hpp"

namespace hpcai::graph {
namespace {

/// Returns how many nodes have each kind of operation.
std::map<std::string, int> census(const Graph& graph) {
    std::map<std::string, int> counts;
    for (const Node& node : graph.nodes()) ++counts[std::string(name_of(node.operation))];
    return counts;
}

/// The first nodes of a graph, up to a convolution; a test adds others.
struct NormStart : GraphMaker {
    ValueId x = convolution("conv", images({2, 4, 4, 3}), 8);
};

TEST(Fuse, JoinsANormalizationWithItsRelu) {
    NormStart make;
    const Graph graph = make.finish(make.relu("relu", make.norm("bn", make.x)), 2);
    const Graph fused = fuse(graph);
    EXPECT_EQ(census(fused)["batch_norm_relu"], 1);
    EXPECT_EQ(census(fused)["relu"], 0);
    EXPECT_EQ(fused.nodes().size(), graph.nodes().size() - 1);
}

TEST(Fuse, JoinsANormalizationWithAnAdditionAndItsRelu) {
    for (const bool norm_first : {true, false}) {
        NormStart make;
        const ValueId norm = make.norm("bn", make.convolution("conv2", make.x, 8));
        const ValueId sum =
            norm_first ? make.add("add", norm, make.x) : make.add("add", make.x, norm);
        const Graph fused = fuse(make.finish(make.relu("relu", sum), 2));
        EXPECT_EQ(census(fused)["batch_norm_add_relu"], 1);
        EXPECT_EQ(census(fused)["add"] + census(fused)["relu"], 0);
        const Node& node = node_named(fused, "bn");
        EXPECT_EQ(node.inputs, (std::vector<ValueId>{fused.find("conv2"), fused.find("conv")}));
        EXPECT_EQ(node.parameters.size(), 2u);
        EXPECT_EQ(node.statistics, 0);
    }
}

TEST(Fuse, TakesOneOfTwoNormalizationsThatAreAdded) {
    NormStart make;
    const ValueId a = make.norm("a", make.convolution("conv_a", make.x, 8));
    const ValueId b = make.norm("b", make.convolution("conv_b", make.x, 8));
    const Graph fused = fuse(make.finish(make.relu("relu", make.add("add", a, b)), 2));
    EXPECT_EQ(census(fused)["batch_norm_add_relu"], 1);
    EXPECT_EQ(census(fused)["batch_norm"], 1);
    EXPECT_EQ(census(fused)["add"] + census(fused)["relu"], 0);
}

TEST(Fuse, KeepsValuesThatOthersRead) {
    NormStart make;
    const ValueId norm = make.norm("bn", make.x);
    const ValueId relu = make.relu("relu", norm);
    const Graph fused = fuse(make.finish(make.add("add", relu, norm), 2));
    EXPECT_EQ(census(fused)["batch_norm"], 1);
    EXPECT_EQ(census(fused)["relu"], 1);
}

TEST(Fuse, KeepsASumThatOthersRead) {
    NormStart make;
    const ValueId sum =
        make.add("add", make.norm("bn", make.convolution("conv2", make.x, 8)), make.x);
    const Graph fused = fuse(make.finish(make.add("again", make.relu("relu", sum), sum), 2));
    EXPECT_EQ(census(fused)["batch_norm"], 1);
    EXPECT_EQ(census(fused)["add"], 2);
    EXPECT_EQ(census(fused)["relu"], 1);
}

TEST(Fuse, LeavesAnAdditionWithoutReluAlone) {
    NormStart make;
    const ValueId norm = make.norm("bn", make.convolution("conv2", make.x, 8));
    const Graph fused = fuse(make.finish(make.add("add", norm, make.x), 2));
    EXPECT_EQ(census(fused)["batch_norm"], 1);
    EXPECT_EQ(census(fused)["add"], 1);
}

TEST(Fuse, LeavesTheSumOfAValueWithItselfAlone) {
    NormStart make;
    const ValueId norm = make.norm("bn", make.x);
    const Graph fused = fuse(make.finish(make.relu("relu", make.add("add", norm, norm)), 2));
    EXPECT_EQ(census(fused)["batch_norm"], 1);
    EXPECT_EQ(census(fused)["add"], 1);
}

TEST(Fuse, LeavesAReluWithoutNormalizationAlone) {
    NormStart make;
    const Graph fused = fuse(make.finish(make.relu("relu", make.x), 2));
    EXPECT_EQ(census(fused)["relu"], 1);
}

TEST(Fuse, ChangesNothingTheSecondTime) {
    // bn, relu, add, relu: the normalization has its ReLU, and the addition comes after it.
    NormStart make;
    const ValueId inner = make.relu("inner", make.norm("bn", make.convolution("c", make.x, 8)));
    const Graph once = fuse(make.finish(make.relu("relu", make.add("add", inner, make.x)), 2));
    const Graph twice = fuse(once);
    EXPECT_EQ(census(once)["batch_norm_relu"], 1);
    EXPECT_EQ(census(twice), census(once));
    EXPECT_EQ(census(fuse(fuse(every_operation()))), census(fuse(every_operation())));
}

TEST(Fuse, KeepsParametersStatisticsAndInputs) {
    const Graph graph = every_operation(), fused = fuse(graph);
    ASSERT_EQ(fused.parameters().size(), graph.parameters().size());
    for (std::size_t id = 0; id < graph.parameters().size(); ++id) {
        EXPECT_EQ(fused.parameters()[id].name, graph.parameters()[id].name);
    }
    EXPECT_EQ(fused.statistics().size(), graph.statistics().size());
    for (const Node& node : fused.nodes()) {
        EXPECT_EQ(node.parameters, node_named(graph, node.name).parameters);
        EXPECT_EQ(node.statistics, node_named(graph, node.name).statistics);
    }
    EXPECT_EQ(fused.value(fused.find("images")).producer, kNoNode);
    EXPECT_EQ(fused.value(fused.find("labels")).producer, kNoNode);
    EXPECT_TRUE(fused.needs_no_input_gradient(node_named(fused, "conv0")));
    EXPECT_FALSE(fused.needs_no_input_gradient(node_named(fused, "bn0")));
}

}  // namespace
}  // namespace hpcai::graph
