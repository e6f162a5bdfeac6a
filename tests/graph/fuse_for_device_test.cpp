// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include <gtest/gtest.h>

#include <hpcai/device/cpu_device.hpp>
#include <hpcai/graph/fuse_for_device.hpp>

#include "graph/graphs.hpp"

namespace hpcai::graph {
namespace {

using device::KernelOptions;
using device::Mode;

/// The number of operations of each kind, and of values that carry sums and of norms that use them.
std::map<std::string, int> census_with_sums(const Graph& graph) {
    std::map<std::string, int> counts;
    for (const Node& node : graph.nodes()) {
        ++counts[std::string(name_of(node.operation))];
        if (outputs_channel_sums(node.operation)) ++counts["sums"];
        const auto* norm = std::get_if<ops::BatchNorm>(&node.operation);
        if (norm != nullptr && norm->from_sums) ++counts["from_sums"];
    }
    return counts;
}

bool everything(const ops::Operation&, const KernelOptions&) {
    return true;
}

Graph fused(const Graph& graph, const Accepts& accepts = everything,
            const NetworkOptions& options = {}) {
    return fuse_for_device(graph, accepts, options);
}

/// The first nodes of a graph, up to a convolution; a test adds others.
struct Start : GraphMaker {
    ValueId x = convolution("conv", images({4, 4, 4, 3}), 8);
};

TEST(FuseFor, GivesABatchNormTheSumsOfItsConvolution) {
    Start make;
    const Graph graph = fused(make.finish(make.relu("relu", make.norm("bn", make.x)), 2));
    EXPECT_TRUE(outputs_channel_sums(node_named(graph, "conv").operation));
    const auto& norm = std::get<ops::BatchNorm>(node_named(graph, "bn").operation);
    EXPECT_TRUE(norm.from_sums);
    EXPECT_TRUE(norm.relu);
}

TEST(FuseFor, MakesANormThatIsOnlyAddedPartOfTheOther) {
    Start make;
    const ValueId a = make.norm("a", make.convolution("conv_a", make.x, 8));
    const ValueId b = make.norm("b", make.convolution("conv_b", make.x, 8, 3));
    const Graph graph = fused(make.finish(make.relu("relu", make.add("add", a, b)), 2));
    EXPECT_EQ(census_with_sums(graph)["dual_norm"], 1);
    EXPECT_EQ(census_with_sums(graph)["batch_norm"], 0);
    const Node& node = node_named(graph, "a");
    EXPECT_EQ(node.inputs, (std::vector{graph.find("conv_a"), graph.find("conv_b")}));
    EXPECT_EQ(node.statistics, 0);
    EXPECT_EQ(node.inner_statistics, 1);
    EXPECT_EQ(node.parameters, (std::vector<ParameterId>{2, 3, 5, 6}));
    const auto& joined = std::get<ops::DualNorm>(node.operation);
    EXPECT_TRUE(joined.outer.from_sums && joined.outer.add && joined.outer.relu);
    EXPECT_TRUE(joined.inner.from_sums && !joined.inner.add && !joined.inner.relu);
}

TEST(FuseFor, MakesAPointwiseConvolutionPartOfTheNormAndAdditionAfterIt) {
    for (const std::int64_t kernel : {1, 3}) {
        Start make;
        const ValueId inner = make.convolution("conv_a", make.x, 8, kernel);
        const ValueId sum = make.add("add", make.norm("a", inner), make.x);
        const Graph graph = fused(make.finish(make.relu("relu", sum), 2));
        EXPECT_EQ(census_with_sums(graph)["pointwise_norm"], kernel == 1);
        if (kernel != 1) continue;
        const Node& node = node_named(graph, "a");
        EXPECT_EQ(node.inputs, (std::vector{graph.find("conv"), graph.find("conv")}));
        EXPECT_EQ(node.parameters, (std::vector<ParameterId>{1, 2, 3}));
        EXPECT_EQ(node.statistics, 0);
        const auto& joined = std::get<ops::PointwiseNorm>(node.operation);
        EXPECT_TRUE(joined.norm.add && joined.norm.relu && !joined.norm.from_sums);
        EXPECT_FALSE(joined.convolution.sums);
    }
}

TEST(FuseFor, MakesPointwiseConvolutionsPartOfBothNormsThatAreAdded) {
    Start make;
    const ValueId a = make.norm("a", make.convolution("conv_a", make.x, 8));
    const ValueId b = make.norm("b", make.convolution("conv_b", make.x, 8));
    const Graph graph = fused(make.finish(make.relu("relu", make.add("add", a, b)), 2));
    EXPECT_EQ(census_with_sums(graph)["pointwise_norm"], 2);
    EXPECT_EQ(node_named(graph, "a").inputs, (std::vector{graph.find("conv"), graph.find("b")}));
    EXPECT_EQ(node_named(graph, "a").parameters, (std::vector<ParameterId>{1, 2, 3}));
    const Node& inner = node_named(graph, "b");
    EXPECT_EQ(inner.inputs, std::vector{graph.find("conv")});
    EXPECT_EQ(inner.parameters, (std::vector<ParameterId>{4, 5, 6}));
    EXPECT_FALSE(std::get<ops::PointwiseNorm>(inner.operation).norm.relu);
}

TEST(FuseFor, MakesANormPartOfThePoolingThatReadsIt) {
    Start make;
    const ValueId relu = make.relu("relu", make.norm("bn", make.x));
    const Graph graph = fused(make.finish(make.max_pool("pool", relu), 2));
    const Node& node = node_named(graph, "pool");
    const auto& joined = std::get<ops::NormPool>(node.operation);
    EXPECT_TRUE(joined.norm.from_sums && joined.norm.relu);
    EXPECT_EQ(joined.pool.stride, 2);
    EXPECT_EQ(node.inputs, std::vector{graph.find("conv")});
    EXPECT_EQ(node.parameters, (std::vector<ParameterId>{1, 2}));
    EXPECT_EQ(node.statistics, 0);

    for (const bool has_relu : {true, false}) {  // read twice, or without a ReLU
        Start other;
        const ValueId norm = other.norm("bn", other.x);
        const ValueId x = has_relu ? other.relu("relu", norm) : norm;
        ValueId end = other.max_pool("pool", x);
        if (has_relu) end = other.add("add", end, other.max_pool("pool2", x));
        EXPECT_EQ(census_with_sums(fused(other.finish(end, 2)))["norm_pool"], 0);
    }
}

TEST(FuseFor, JoinsWhatAResNetIsMadeOf) {
    const Graph plain = small_resnet(), graph = fused(plain);
    const std::map<std::string, int> expected{{"input_normalize", 1},
                                              {"convolution", 11},
                                              {"batch_norm_relu", 8},
                                              {"norm_pool", 1},
                                              {"dual_norm", 1},
                                              {"pointwise_norm", 4},
                                              {"global_average_pool", 1},
                                              {"linear", 1},
                                              {"softmax_cross_entropy", 1},
                                              {"sums", 11},
                                              {"from_sums", 8}};
    EXPECT_EQ(census_with_sums(graph), expected);
    EXPECT_EQ(graph.parameters().size(), plain.parameters().size());
    std::multiset<ParameterId> seen;
    for (const Node& node : graph.nodes()) {
        seen.insert(node.parameters.begin(), node.parameters.end());
    }
    EXPECT_EQ(seen.size(), graph.parameters().size());
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), graph.parameters().size());
    for (const ops::LedgerName& ledger : ops::kLedgers) {
        EXPECT_EQ(flops(graph, ledger.ledger).training(), flops(plain, ledger.ledger).training());
    }
}

TEST(FuseFor, KeepsValuesThatOthersRead) {
    Start shared;  // an addition and a convolution read its second norm
    const ValueId first = shared.norm("a", shared.convolution("conv2", shared.x, 8, 3));
    const ValueId second = shared.norm("b", shared.convolution("conv3", shared.x, 8));
    const ValueId both = shared.relu("relu", shared.add("add", first, second));
    const ValueId again = shared.convolution("conv4", second, 8);
    Graph graph = fused(shared.finish(shared.add("add2", both, again), 2));
    EXPECT_EQ(census_with_sums(graph)["sums"], 2);
    EXPECT_EQ(census_with_sums(graph)["dual_norm"], 0);

    Start other;  // two norms read its convolution
    const ValueId a = other.norm("a", other.x), b = other.norm("b", other.x);
    graph = fused(other.finish(other.add("add", a, b), 2));
    EXPECT_EQ(census_with_sums(graph)["sums"], 0);
    EXPECT_EQ(census_with_sums(graph)["dual_norm"], 0);

    Start residual;  // a convolution without a norm is added
    const ValueId norm = residual.norm("a", residual.convolution("conv2", residual.x, 8, 3));
    const ValueId sum = residual.add("add", norm, residual.convolution("conv3", residual.x, 8));
    graph = fused(residual.finish(residual.relu("relu", sum), 2));
    EXPECT_TRUE(outputs_channel_sums(node_named(graph, "conv2").operation));
    EXPECT_FALSE(outputs_channel_sums(node_named(graph, "conv3").operation));
}

TEST(FuseFor, LeavesNormsOfVirtualBatchesAlone) {
    for (const std::int64_t samples : {0, 4, 2}) {
        Start make;
        make.statistics_samples = samples;
        const ValueId relu = make.relu("relu", make.norm("bn", make.x));
        const ValueId a = make.norm("a", make.convolution("conv_a", relu, 8, 3));
        const ValueId b = make.norm("b", make.convolution("conv_b", make.x, 8, 3));
        auto counts =
            census_with_sums(fused(make.finish(make.relu("out", make.add("add", a, b)), 2)));
        EXPECT_EQ(counts["sums"], samples == 2 ? 0 : 2);  // two nodes read the first convolution
        EXPECT_EQ(counts["dual_norm"], samples == 2 ? 0 : 1);
    }
}

TEST(FuseFor, LeavesFrozenNormsAlone) {
    Start make;
    make.frozen = true;
    const ValueId relu = make.relu("relu", make.norm("bn", make.x));
    const ValueId a = make.norm("a", make.convolution("conv_a", relu, 8));
    const ValueId b = make.norm("b", make.convolution("conv_b", make.x, 8));
    const Graph plain = make.finish(make.relu("out", make.add("add", a, b)), 2);
    EXPECT_EQ(census_with_sums(fused(plain)), census_with_sums(fuse(plain)));
}

TEST(FuseFor, LeavesInferenceAlone) {
    const Graph plain = small_resnet();
    EXPECT_EQ(census_with_sums(fused(plain, everything, {Mode::inference})),
              census_with_sums(fuse(plain)));
}

TEST(FuseFor, AsksOfEachOperationAsItWouldBeBuilt) {
    int asked = 0;
    const Accepts half_only = [&](const ops::Operation& operation, const KernelOptions& options) {
        ++asked;
        EXPECT_EQ(options.compute, tensor::DType::f16);
        EXPECT_EQ(options.mode, Mode::training);
        const auto* convolution = std::get_if<ops::Convolution>(&operation);
        const bool is_stem = convolution != nullptr && convolution->input[3] == 3;
        EXPECT_EQ(options.needs_input_gradient, !is_stem);
        return true;
    };
    fused(small_resnet(), half_only, {Mode::training, tensor::DType::f16});
    EXPECT_GT(asked, 20);
}

TEST(FuseFor, DoesOnlyWhatIsAccepted) {
    const Graph plain = small_resnet();
    const auto without = [&](const auto& refused) {
        return census_with_sums(
            fused(plain, [&](const ops::Operation& operation, const KernelOptions&) {
                return !refused(operation);
            }));
    };
    const auto nothing = [](const ops::Operation&) { return true; };
    EXPECT_EQ(without(nothing), census_with_sums(fuse(plain)));

    auto counts =
        without([](const auto& op) { return std::holds_alternative<ops::BatchNorm>(op); });
    EXPECT_EQ(counts["sums"], 0);
    EXPECT_EQ(counts["from_sums"], 0);

    counts = without(
        [](const auto& op) { return ops::is_one_of<ops::DualNorm, ops::PointwiseNorm>(op); });
    EXPECT_EQ(counts["batch_norm"], 2);
    EXPECT_EQ(counts["batch_norm_add_relu"], 4);

    counts = without([](const auto& op) { return std::holds_alternative<ops::NormPool>(op); });
    EXPECT_EQ(counts["batch_norm_relu"], 9);
    EXPECT_EQ(counts["max_pool"], 1);

    counts = without([](const auto& op) { return std::holds_alternative<ops::PointwiseNorm>(op); });
    EXPECT_EQ(counts["convolution"], 15);
    EXPECT_EQ(counts["batch_norm_add_relu"], 2);
    EXPECT_EQ(counts["sums"], 15);

    // One layer alone falls back; its norm reads the image as before.
    counts = without([](const auto& op) {
        const auto* convolution = std::get_if<ops::Convolution>(&op);
        return convolution != nullptr && convolution->input[3] == 3;
    });
    EXPECT_EQ(counts["sums"], 10);
    EXPECT_EQ(counts["from_sums"], 8);
}

TEST(FuseFor, DoesNothingMoreThanFuseForADeviceThatAcceptsNothing) {
    const auto cpu = device::make_cpu_device({});
    EXPECT_EQ(census_with_sums(fuse_for_device(small_resnet(), *cpu, {})),
              census_with_sums(fuse(small_resnet())));
}

}  // namespace
}  // namespace hpcai::graph
