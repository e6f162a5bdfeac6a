// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

#include "models/networks.hpp"

namespace hpcai::models {
namespace {

using graph::Graph;
using tensor::Shape;

ResNet50 v1() {
    return {.backbone = {.stride_on_3x3 = false}};
}
ResNet50 v1_5() {
    return {.backbone = {.stride_on_3x3 = true}};
}

const Shape& shape_of(const Graph& graph, const std::string& value) {
    return graph.value(graph.find(value)).shape;
}

// Shapes in torchvision's order (K, C, R, S), as resnet50().state_dict() lists them.
std::map<std::string, std::vector<std::int64_t>> torchvision_parameters() {
    std::map<std::string, std::vector<std::int64_t>> all;
    const auto norm = [&](const std::string& name, std::int64_t channels) {
        all[name + ".weight"] = all[name + ".bias"] = {channels};
    };
    all["conv1.weight"] = {64, 3, 7, 7};
    norm("bn1", 64);
    const int blocks[] = {3, 4, 6, 3};
    std::int64_t inputs = 64;
    for (int layer = 1; layer <= 4; ++layer) {
        const std::int64_t width = std::int64_t{32} << layer;
        for (int block = 0; block < blocks[layer - 1]; ++block) {
            const std::string name =
                "layer" + std::to_string(layer) + "." + std::to_string(block) + ".";
            all[name + "conv1.weight"] = {width, inputs, 1, 1};
            all[name + "conv2.weight"] = {width, width, 3, 3};
            all[name + "conv3.weight"] = {4 * width, width, 1, 1};
            norm(name + "bn1", width);
            norm(name + "bn2", width);
            norm(name + "bn3", 4 * width);
            if (block == 0) {
                all[name + "downsample.0.weight"] = {4 * width, inputs, 1, 1};
                norm(name + "downsample.1", 4 * width);
            }
            inputs = 4 * width;
        }
    }
    all["fc.weight"] = {1000, 2048};
    all["fc.bias"] = {1000};
    return all;
}

TEST(ResNet50Model, HasTorchvisionsParameterNamesAndShapes) {
    for (const auto& options : {v1(), v1_5()}) {
        const Graph graph = make_resnet50(options);
        auto expected = torchvision_parameters();
        EXPECT_EQ(graph.parameters().size(), 161u);
        EXPECT_EQ(graph.parameter_count(), 25'557'032);
        for (const auto& parameter : graph.parameters()) {
            ASSERT_TRUE(expected.contains(parameter.name)) << parameter.name;
            std::vector<std::int64_t> shape(parameter.shape.begin(), parameter.shape.end());
            if (shape.size() == 4) shape = {shape[0], shape[3], shape[1], shape[2]};
            EXPECT_EQ(shape, expected[parameter.name]) << parameter.name;
            expected.erase(parameter.name);
        }
        EXPECT_TRUE(expected.empty());
    }
}

TEST(ResNet50Model, KeepsRunningStatisticsOfEveryNormalizationUnderItsName) {
    const Graph graph = make_resnet50({});
    EXPECT_EQ(graph.statistics().size(), 53u);
    std::set<std::string> names;
    for (const auto& node : graph.nodes()) {
        if (!std::holds_alternative<ops::BatchNorm>(node.operation)) {
            EXPECT_EQ(node.statistics, -1);
            continue;
        }
        const auto& statistics = graph.statistics().at(static_cast<std::size_t>(node.statistics));
        names.insert(statistics.name);
        EXPECT_EQ(statistics.name, node.name);
        EXPECT_EQ(statistics.channels, graph.value(node.output).shape[3]);
        EXPECT_EQ(graph.parameters()[static_cast<std::size_t>(node.parameters[0])].name,
                  node.name + ".weight");
        EXPECT_EQ(graph.parameters()[static_cast<std::size_t>(node.parameters[1])].name,
                  node.name + ".bias");
    }
    EXPECT_EQ(names.size(), 53u);
}

TEST(ResNet50Model, HalvesTheImageOnThe1x1InV1AndOnThe3x3InV1_5) {
    const Graph old = make_resnet50(v1()), now = make_resnet50(v1_5());
    EXPECT_EQ(shape_of(old, "layer2.0.conv1"), (Shape{1, 28, 28, 128}));
    EXPECT_EQ(shape_of(now, "layer2.0.conv1"), (Shape{1, 56, 56, 128}));
    for (const Graph* graph : {&old, &now}) {
        EXPECT_EQ(shape_of(*graph, "conv1"), (Shape{1, 112, 112, 64}));
        EXPECT_EQ(shape_of(*graph, "maxpool"), (Shape{1, 56, 56, 64}));
        EXPECT_EQ(shape_of(*graph, "layer1.2.relu3"), (Shape{1, 56, 56, 256}));
        EXPECT_EQ(shape_of(*graph, "layer2.0.conv2"), (Shape{1, 28, 28, 128}));
        EXPECT_EQ(shape_of(*graph, "layer3.5.relu3"), (Shape{1, 14, 14, 1024}));
        EXPECT_EQ(shape_of(*graph, "layer4.2.relu3"), (Shape{1, 7, 7, 2048}));
        EXPECT_EQ(shape_of(*graph, "avgpool"), (Shape{1, 2048}));
        EXPECT_EQ(shape_of(*graph, "loss"), (Shape{1, 1000}));
    }
}

TEST(ResNet50Model, TakesAnyClassesSizeChannelsAndBatch) {
    for (const std::int64_t size : {1, 32, 33, 64, 97, 288}) {
        const ResNet50 options{
            .batch = 3,
            .image_size = size,
            .channels = 5,
            .classes = 21,
            .input = {.mean = {0, 0, 0, 0, 0}, .standard_deviation = {1, 1, 1, 1, 1}}};
        const Graph graph = make_resnet50(options);
        EXPECT_EQ(shape_of(graph, "images"), (Shape{3, size, size, 5}));
        EXPECT_EQ(shape_of(graph, "labels"), Shape{3});
        EXPECT_EQ(shape_of(graph, "loss"), (Shape{3, 21}));
        const std::int64_t pixels = (size + 31) / 32;
        EXPECT_EQ(shape_of(graph, "layer4.2.relu3"), (Shape{3, pixels, pixels, 2048}));
        EXPECT_EQ(graph.parameter_count(), 25'557'032 + 2 * 64 * 49 - (1000 - 21) * (2048 + 1));
    }
    EXPECT_EQ(make_resnet50({.backbone = {.width = 8, .blocks = {1, 1, 1, 1}}}).statistics().size(),
              17u);
}

TEST(ResNet50Model, StartsTheLastNormalizationOfEachBlockAtZeroIfAsked) {
    for (const bool zero_gamma : {true, false}) {
        int zeros = 0;
        const Graph graph = make_resnet50({.backbone = {.zero_gamma = zero_gamma}});
        for (const auto& parameter : graph.parameters()) {
            if (!parameter.starts_at_zero) continue;
            ++zeros;
            EXPECT_TRUE(parameter.name.ends_with(".bn3.weight")) << parameter.name;
        }
        EXPECT_EQ(zeros, zero_gamma ? 16 : 0);
    }
}

TEST(ResNet50Model, ReportsWhatEachParameterIs) {
    using graph::ParameterKind;
    std::map<ParameterKind, int> counts;
    const Graph graph = make_resnet50({});
    for (const auto& parameter : graph.parameters()) ++counts[parameter.kind];
    EXPECT_EQ(counts[ParameterKind::filters], 53);
    EXPECT_EQ(counts[ParameterKind::norm_scale], 53);
    EXPECT_EQ(counts[ParameterKind::norm_shift], 53);
    EXPECT_EQ(counts[ParameterKind::linear_weight], 1);
    EXPECT_EQ(counts[ParameterKind::bias], 1);
}

TEST(ResNet50Model, PassesItsSettingsToTheOperations) {
    const Graph graph =
        make_resnet50({.batch = 8,
                       .label_smoothing = 0.1,
                       .backbone = {.norm = {.momentum = 0.2, .statistics_samples = 4}}});
    for (const auto& node : graph.nodes()) {
        if (const auto* norm = std::get_if<ops::BatchNorm>(&node.operation)) {
            EXPECT_EQ(norm->momentum, 0.2);
            EXPECT_EQ(norm->statistics_samples, 4);
            EXPECT_EQ(norm->epsilon, 1e-5);
        }
    }
    EXPECT_EQ(std::get<ops::SoftmaxCrossEntropy>(graph.nodes().back().operation).label_smoothing,
              0.1);
    EXPECT_THROW(make_resnet50({.batch = 6, .backbone = {.norm = {.statistics_samples = 4}}}),
                 Error);
}

struct Totals {
    ResNet50 options;
    std::int64_t two_mac, table3;
};

class ResNet50Flops : public testing::TestWithParam<Totals> {};

TEST_P(ResNet50Flops, AreTheKnownTotals) {
    const Graph graph = make_resnet50(GetParam().options);
    EXPECT_EQ(flops(graph, ops::Ledger::two_mac).forward, GetParam().two_mac);
    EXPECT_EQ(flops(graph, ops::Ledger::table3).forward, GetParam().table3);
    EXPECT_EQ(flops(graph, ops::Ledger::table3).training(), 3 * GetParam().table3);
    const std::int64_t stem = std::int64_t{2} * 49 * 3 * 112 * 112 * 64;
    EXPECT_EQ(flops(graph, ops::Ledger::two_mac).training(), 3 * GetParam().two_mac - stem);
}

TEST_P(ResNet50Flops, AreTheSameFused) {
    const Graph graph = make_resnet50(GetParam().options);
    for (const auto& ledger : ops::kLedgers) {
        const ops::Flops plain = flops(graph, ledger.ledger);
        const ops::Flops fused = flops(graph::fuse(graph), ledger.ledger);
        EXPECT_EQ(fused.forward, plain.forward) << ledger.name;
        EXPECT_EQ(fused.weight_gradient, plain.weight_gradient) << ledger.name;
        EXPECT_EQ(fused.input_gradient, plain.input_gradient) << ledger.name;
    }
}

TEST_P(ResNet50Flops, GrowWithTheBatch) {
    ResNet50 options = GetParam().options;
    options.batch = 32;
    EXPECT_EQ(flops(make_resnet50(options), ops::Ledger::table3).forward, 32 * GetParam().table3);
}

INSTANTIATE_TEST_SUITE_P(At224, ResNet50Flops,
                         testing::Values(Totals{v1(), 7'715'946'496, 7'739'990'016},
                                         Totals{v1_5(), 8'178'368'512, 8'203'465'728}),
                         [](const auto& test) {
                             return test.param.options.backbone.stride_on_3x3 ? "v1_5" : "v1";
                         });

TEST(ResNet50Model, CountsAiPerfsFlopsForV1) {
    const ops::Flops count = flops(make_resnet50(v1()), ops::Ledger::aiperf);
    EXPECT_EQ(count.forward, 7'806'583'495);
    EXPECT_EQ(count.training(), 23'053'458'315);
}

}  // namespace
}  // namespace hpcai::models
