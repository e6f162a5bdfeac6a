// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "networks.hpp"

namespace hpcai::models {

using graph::ParameterKind;

graph::ValueId Layers::images(const tensor::Shape& shape, const ImageInput& input) {
    const ValueId images = graph_.add_input("images", shape, input.dtype);
    return graph_.add_node(
        "normalize", ops::InputNormalize{shape, input.mean, input.standard_deviation, input.dtype},
        {images});
}

graph::ValueId Layers::convolution(const std::string& name, ValueId input, std::int64_t filters,
                                   Window window, bool is_trained) {
    const tensor::Shape& input_shape = shape(input);
    const auto weight =
        graph_.add_parameter({.name = name + ".weight",
                              .shape = {filters, window.kernel, window.kernel, input_shape[3]},
                              .kind = ParameterKind::filters,
                              .is_trained = is_trained});
    return graph_.add_node(
        name,
        ops::Convolution{input_shape, filters, window.kernel, window.stride, window.kernel / 2},
        {input}, {weight});
}

graph::ValueId Layers::norm(const std::string& name, ValueId input, const NormOptions& options,
                            bool starts_at_zero) {
    const tensor::Shape input_shape = shape(input);
    const bool is_frozen = options.kind == Norm::frozen_batch;
    const auto scale = graph_.add_parameter({.name = name + ".weight",
                                             .shape = {input_shape[3]},
                                             .kind = ParameterKind::norm_scale,
                                             .starts_at_zero = starts_at_zero && !is_frozen,
                                             .is_trained = !is_frozen});
    const auto shift = graph_.add_parameter({.name = name + ".bias",
                                             .shape = {input_shape[3]},
                                             .kind = ParameterKind::norm_shift,
                                             .is_trained = !is_frozen});
    if (options.kind == Norm::group) {
        return graph_.add_node(name, ops::GroupNorm{.input = input_shape}, {input}, {scale, shift});
    }
    const auto statistics = graph_.add_statistics({name, input_shape[3]});
    return graph_.add_node(name,
                           ops::BatchNorm{.input = input_shape,
                                          .momentum = options.momentum,
                                          .statistics_samples = options.statistics_samples,
                                          .frozen = is_frozen},
                           {input}, {scale, shift}, statistics);
}

graph::ValueId Layers::relu(const std::string& name, ValueId input) {
    return graph_.add_node(name, ops::Relu{shape(input)}, {input});
}

graph::ValueId Layers::max_pool(const std::string& name, ValueId input,
                                const ops::MaxPool& window) {
    ops::MaxPool operation = window;
    operation.input = shape(input);
    return graph_.add_node(name, operation, {input});
}

graph::ValueId Layers::block(const std::string& name, ValueId input, const Backbone& options,
                             const Block& block) {
    const auto [width, stride, is_trained] = block;
    const std::int64_t first_stride = options.stride_on_3x3 ? 1 : stride;
    const std::int64_t second_stride = options.stride_on_3x3 ? stride : 1;
    const NormOptions& norms = options.norm;
    ValueId x = convolution(name + ".conv1", input, width, {1, first_stride}, is_trained);
    x = relu(name + ".relu1", norm(name + ".bn1", x, norms));
    x = convolution(name + ".conv2", x, width, {3, second_stride}, is_trained);
    x = relu(name + ".relu2", norm(name + ".bn2", x, norms));
    x = convolution(name + ".conv3", x, 4 * width, {1, 1}, is_trained);
    ValueId shortcut = input;
    if (stride != 1 || shape(input)[3] != 4 * width) {
        shortcut = convolution(name + ".downsample.0", input, 4 * width, {1, stride}, is_trained);
        shortcut = norm(name + ".downsample.1", shortcut, norms);
    }
    x = norm(name + ".bn3", x, norms, options.zero_gamma);
    return relu(name + ".relu3", graph_.add_node(name + ".add", ops::Add{shape(x)}, {x, shortcut}));
}

std::array<graph::ValueId, 4> Layers::backbone(const std::string& prefix, ValueId images,
                                               const Backbone& options) {
    ValueId x =
        convolution(prefix + "conv1", images, options.width, {7, 2}, options.trained_stages == 5);
    x = relu(prefix + "relu", norm(prefix + "bn1", x, options.norm));
    x = max_pool(prefix + "maxpool", x, {.kernel = 3, .stride = 2, .padding = 1});
    std::array<ValueId, 4> stages{};
    for (int stage = 0; stage < 4; ++stage) {
        const bool is_trained = stage + options.trained_stages >= 4;
        for (int index = 0; index < options.blocks[stage]; ++index) {
            const std::int64_t stride = stage > 0 && index == 0 ? 2 : 1;
            x = block(fmt::format("{}layer{}.{}", prefix, stage + 1, index), x, options,
                      {options.width << stage, stride, is_trained});
        }
        stages[stage] = x;
    }
    return stages;
}

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
