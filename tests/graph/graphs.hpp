// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include <hpcai/graph/graph.hpp>

namespace hpcai::graph {

/// Writes small graphs down quickly.
struct GraphMaker {
    Graph graph;

    const tensor::Shape& shape(ValueId value) const { return graph.value(value).shape; }

    ValueId images(const tensor::Shape& shape) {
        const ValueId pixels = graph.add_input("images", shape);
        const auto channels = static_cast<std::size_t>(shape[3]);
        return graph.add_node("normalize",
                              ops::InputNormalize{shape, std::vector<double>(channels, 0.5),
                                                  std::vector<double>(channels, 0.25)},
                              {pixels});
    }
    ValueId convolution(const std::string& name, ValueId x, std::int64_t filters,
                        std::int64_t kernel = 1) {
        const auto weight = graph.add_parameter(
            {name + ".weight", {filters, kernel, kernel, shape(x)[3]}, ParameterKind::filters});
        return graph.add_node(name, ops::Convolution{shape(x), filters, kernel, 1, kernel / 2}, {x},
                              {weight});
    }
    ValueId norm(const std::string& name, ValueId x) {
        const tensor::Shape channels{shape(x)[3]};
        const auto scale =
            graph.add_parameter({name + ".weight", channels, ParameterKind::norm_scale});
        const auto shift =
            graph.add_parameter({name + ".bias", channels, ParameterKind::norm_shift});
        const auto statistics = graph.add_statistics({name, channels[0]});
        return graph.add_node(name, ops::BatchNorm{.input = shape(x)}, {x}, {scale, shift},
                              statistics);
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
        const ValueId labels = graph.add_input("labels", {shape(x)[0]});
        graph.add_node("loss", ops::SoftmaxCrossEntropy{shape(logits), 0.1}, {logits, labels});
        return std::move(graph);
    }
};

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
