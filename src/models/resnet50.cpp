// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "networks.hpp"

namespace hpcai::models {

using graph::ParameterKind;

graph::Graph make_resnet50(const ResNet50& options) {
    Layers layers;
    graph::Graph& graph = layers.graph();
    const std::int64_t size = options.image_size;
    const graph::ValueId images =
        layers.images({options.batch, size, size, options.channels}, options.input);
    const graph::ValueId features = layers.backbone("", images, options.backbone).back();
    const graph::ValueId pooled =
        graph.add_node("avgpool", ops::GlobalAveragePool{layers.shape(features)}, {features});
    const tensor::Shape shape = layers.shape(pooled);
    const auto weight = graph.add_parameter(
        {"fc.weight", {options.classes, shape[1]}, ParameterKind::linear_weight});
    const auto bias = graph.add_parameter({"fc.bias", {options.classes}, ParameterKind::bias});
    const graph::ValueId logits =
        graph.add_node("fc", ops::Linear{shape, options.classes}, {pooled}, {weight, bias});
    const graph::ValueId labels = graph.add_input("labels", {options.batch}, tensor::DType::s32);
    graph.add_node("loss", ops::SoftmaxCrossEntropy{layers.shape(logits), options.label_smoothing},
                   {logits, labels});
    return std::move(graph);
}

}  // namespace hpcai::models
