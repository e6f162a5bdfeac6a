// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/training/initialize.hpp>

#include "networks.hpp"

namespace hpcai::training {
namespace {

using graph::ParameterKind;

struct Moments {
    double mean = 0;
    double deviation = 0;
};

Moments moments_of(std::span<const float> values) {
    Moments moments;
    for (const float value : values) moments.mean += value;
    moments.mean /= static_cast<double>(values.size());
    for (const float value : values) moments.deviation += std::pow(value - moments.mean, 2);
    moments.deviation = std::sqrt(moments.deviation / static_cast<double>(values.size()));
    return moments;
}

/// A graph with enough numbers in each parameter for statistics.
graph::Graph wide_graph() {
    graph::GraphMaker make;
    graph::ValueId x = make.images({1, 8, 8, 3});
    x = make.relu("relu0", make.norm("bn0", make.convolution("conv0", x, 128, 7)));
    x = make.relu("relu1", make.norm("bn1", make.convolution("conv1", x, 64, 3)));
    return make.finish(make.convolution("conv2", x, 256), 100);
}

std::vector<float> weights(const graph::Graph& graph, std::uint64_t seed, std::uint32_t model) {
    const auto device = device::make_cpu_device({});
    graph::ParameterStore store(graph, *device);
    initialize(graph, seed, model, store);
    return {store.parameters().begin(), store.parameters().end()};
}

TEST(Initialize, GivesEachKindItsDeviation) {
    const graph::Graph graph = wide_graph();
    const auto device = device::make_cpu_device({});
    graph::ParameterStore store(graph, *device);
    initialize(graph, 3, 1, store);
    // sqrt(2 / (filters x kernel x kernel)), He et al.'s fan out; 0.01 for the linear layer
    const std::map<std::string, double> expected{
        {"conv0.weight", std::sqrt(2.0 / (128 * 49))},
        {"conv1.weight", std::sqrt(2.0 / (64 * 9))},
        {"conv2.weight", std::sqrt(2.0 / 256)},
        {"fc.weight", 0.01},
    };
    for (std::size_t id = 0; id < graph.parameters().size(); ++id) {
        const graph::Parameter& parameter = graph.parameters()[id];
        const auto values = store.parameter(static_cast<graph::ParameterId>(id));
        const Moments moments = moments_of(values);
        const auto found = expected.find(parameter.name);
        if (found != expected.end()) {
            // At least 16,384 draws: one standard error is 0.6 % of the deviation and 0.8 % for the
            // mean.
            EXPECT_GE(values.size(), 16384U);
            EXPECT_NEAR(moments.deviation / found->second, 1, 0.025) << parameter.name;
            EXPECT_NEAR(moments.mean / found->second, 0, 0.035) << parameter.name;
        } else {
            const bool scale = parameter.kind == ParameterKind::norm_scale;
            EXPECT_EQ(moments.mean, scale ? 1 : 0) << parameter.name;
            EXPECT_EQ(moments.deviation, 0) << parameter.name;
        }
    }
}

TEST(Initialize, StartsScalesAtZeroWhereTheGraphRequiresIt) {
    graph::Graph graph;
    for (const bool zero : {true, false}) {
        graph.add_parameter({zero ? "zero" : "one", {16}, ParameterKind::norm_scale, zero});
    }
    const auto device = device::make_cpu_device({});
    graph::ParameterStore store(graph, *device);
    initialize(graph, 1, 0, store);
    for (const float value : store.parameter(0)) EXPECT_EQ(value, 0);
    for (const float value : store.parameter(1)) EXPECT_EQ(value, 1);
}

TEST(Initialize, IsAFunctionOfSeedAndModel) {
    const graph::Graph graph = wide_graph();
    const std::vector<float> first = weights(graph, 3, 0);
    EXPECT_EQ(weights(graph, 3, 0), first);
    const std::vector<float> other_model = weights(graph, 3, 1);
    const std::vector<float> other_seed = weights(graph, 4, 0);
    EXPECT_NE(other_model, first);
    EXPECT_NE(other_seed, first);
    EXPECT_NE(other_seed, other_model);
}

TEST(Initialize, DrawsEachParameterAfresh) {
    graph::Graph graph;
    for (const char* name : {"a", "b"}) {
        graph.add_parameter({name, {4, 1, 1, 4}, ParameterKind::filters});
    }
    const std::vector<float> all = weights(graph, 3, 0);
    const auto middle = all.begin() + 16;
    EXPECT_FALSE(std::equal(all.begin(), middle, middle));
}

}  // namespace
}  // namespace hpcai::training
