// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include <hpcai/graph/graph.hpp>

namespace hpcai::graph {

inline const Node& node_named(const Graph& graph, const std::string& name) {
    return graph.nodes()[static_cast<std::size_t>(graph.value(graph.find(name)).producer)];
}

/// Builds small graphs.
struct GraphMaker {
    Graph graph;
    std::int64_t statistics_samples = 0;  // of norms
    bool frozen = false;                  // norms

    const tensor::Shape& shape(ValueId value) const { return graph.value(value).shape; }

    ValueId images(const tensor::Shape& shape) {
        const ValueId pixels = graph.add_input("images", shape, tensor::DType::u8);
        const auto channels = static_cast<std::size_t>(shape[3]);
        return graph.add_node("normalize",
                              ops::InputNormalize{shape, std::vector<double>(channels, 0.5),
                                                  std::vector<double>(channels, 0.25)},
                              {pixels});
    }
    ValueId convolution(const std::string& name, ValueId x, std::int64_t filters,
                        std::int64_t kernel = 1, std::int64_t stride = 1) {
        const auto weight = graph.add_parameter(
            {name + ".weight", {filters, kernel, kernel, shape(x)[3]}, ParameterKind::filters});
        return graph.add_node(name, ops::Convolution{shape(x), filters, kernel, stride, kernel / 2},
                              {x}, {weight});
    }
    ValueId norm(const std::string& name, ValueId x) {
        const tensor::Shape channels{shape(x)[3]};
        const auto scale =
            graph.add_parameter({name + ".weight", channels, ParameterKind::norm_scale});
        const auto shift =
            graph.add_parameter({name + ".bias", channels, ParameterKind::norm_shift});
        const auto statistics = graph.add_statistics({name, channels[0]});
        return graph.add_node(
            name,
            ops::BatchNorm{
                .input = shape(x), .statistics_samples = statistics_samples, .frozen = frozen},
            {x}, {scale, shift}, statistics);
    }
    ValueId relu(const std::string& name, ValueId x) {
        return graph.add_node(name, ops::Relu{shape(x)}, {x});
    }
    ValueId add(const std::string& name, ValueId a, ValueId b) {
        return graph.add_node(name, ops::Add{shape(a)}, {a, b});
    }
    ValueId max_pool(const std::string& name, ValueId x) {
        return graph.add_node(name, ops::MaxPool{shape(x), 3, 2, 1}, {x});
    }
    /// Global average pool, linear layer and loss: what every network ends with.
    Graph finish(ValueId x, std::int64_t classes) {
        const ValueId features = graph.add_node("avgpool", ops::GlobalAveragePool{shape(x)}, {x});
        const auto weight = graph.add_parameter(
            {"fc.weight", {classes, shape(features)[1]}, ParameterKind::linear_weight});
        const auto bias = graph.add_parameter({"fc.bias", {classes}, ParameterKind::bias});
        const ValueId logits =
            graph.add_node("fc", ops::Linear{shape(features), classes}, {features}, {weight, bias});
        const ValueId labels = graph.add_input("labels", {shape(x)[0]}, tensor::DType::s32);
        graph.add_node("loss", ops::SoftmaxCrossEntropy{shape(logits), 0.1}, {logits, labels});
        return std::move(graph);
    }
};

/// A residual block as ResNet-50 has them, with a projection where shapes differ.
inline ValueId bottleneck(GraphMaker& make, const std::string& name, ValueId x, std::int64_t width,
                          std::int64_t stride) {
    const auto norm_relu = [&](const std::string& part, ValueId y) {
        return make.relu(name + ".relu" + part, make.norm(name + ".bn" + part, y));
    };
    ValueId y = norm_relu("1", make.convolution(name + ".conv1", x, width));
    y = norm_relu("2", make.convolution(name + ".conv2", y, width, 3, stride));
    ValueId shortcut = x;
    y = make.convolution(name + ".conv3", y, 2 * width);
    if (make.shape(x) != make.shape(y)) {
        shortcut =
            make.norm(name + ".down.bn", make.convolution(name + ".down", x, 2 * width, 1, stride));
    }
    y = make.norm(name + ".bn3", y);
    return make.relu(name + ".relu3", make.add(name + ".add", y, shortcut));
}

/// A stem of three channels, and blocks with and without a projection.
inline Graph small_resnet() {
    GraphMaker make;
    ValueId x = make.convolution("conv", make.images({3, 16, 14, 3}), 8, 3);
    x = make.max_pool("pool", make.relu("relu", make.norm("bn", x)));
    x = bottleneck(make, "a", x, 8, 1);
    x = bottleneck(make, "b", x, 8, 1);
    x = bottleneck(make, "c", x, 16, 2);
    return make.finish(bottleneck(make, "d", x, 16, 1), 5);
}

/// Every kind of operation, a value with three readers, and a residual addition.
inline Graph every_operation() {
    GraphMaker make;
    ValueId x = make.images({4, 9, 8, 3});
    x = make.relu("relu0", make.norm("bn0", make.convolution("conv0", x, 16, 3)));
    x = make.max_pool("pool", x);
    const ValueId main = make.norm("bn1", make.convolution("conv1", x, 16, 3));
    const ValueId side = make.norm("bn2", make.convolution("conv2", x, 16));
    const ValueId sum = make.relu("relu1", make.add("add1", main, side));
    return make.finish(make.relu("relu2", make.add("add2", sum, x)), 5);
}

}  // namespace hpcai::graph
