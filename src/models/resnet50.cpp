// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include <fmt/format.h>

#include <hpcai/models/resnet50.hpp>

namespace hpcai::models {
namespace {

using graph::Graph;
using graph::ParameterKind;
using graph::ValueId;

/// Appends layers under torchvision's names.
class Builder {
public:
    explicit Builder(const ResNet50& options) : options_(options) {}

    struct Window {
        std::int64_t kernel = 1;
        std::int64_t stride = 1;
    };

    ValueId convolution(const std::string& name, ValueId input, std::int64_t filters,
                        Window window) {
        const tensor::Shape shape = graph_.value(input).shape;
        const auto weight = graph_.add_parameter({name + ".weight",
                                                  {filters, window.kernel, window.kernel, shape[3]},
                                                  ParameterKind::filters});
        return graph_.add_node(
            name, ops::Convolution{shape, filters, window.kernel, window.stride, window.kernel / 2},
            {input}, {weight});
    }

    ValueId norm(const std::string& name, ValueId input, bool starts_at_zero = false) {
        const tensor::Shape shape = graph_.value(input).shape;
        const auto scale = graph_.add_parameter(
            {name + ".weight", {shape[3]}, ParameterKind::norm_scale, starts_at_zero});
        const auto shift =
            graph_.add_parameter({name + ".bias", {shape[3]}, ParameterKind::norm_shift});
        const auto statistics = graph_.add_statistics({name, shape[3]});
        return graph_.add_node(name,
                               ops::BatchNorm{.input = shape,
                                              .momentum = options_.norm_momentum,
                                              .statistics_samples = options_.statistics_samples},
                               {input}, {scale, shift}, statistics);
    }

    ValueId relu(const std::string& name, ValueId input) {
        return graph_.add_node(name, ops::Relu{graph_.value(input).shape}, {input});
    }

    /// Bottleneck: 1x1, 3x3, 1x1 with four times the width, plus the shortcut.
    ValueId block(const std::string& name, ValueId input, std::int64_t width, std::int64_t stride) {
        const std::int64_t first_stride = options_.stride_on_3x3 ? 1 : stride;
        const std::int64_t second_stride = options_.stride_on_3x3 ? stride : 1;
        ValueId x = convolution(name + ".conv1", input, width, {1, first_stride});
        x = relu(name + ".relu1", norm(name + ".bn1", x));
        x = convolution(name + ".conv2", x, width, {3, second_stride});
        x = relu(name + ".relu2", norm(name + ".bn2", x));
        x = convolution(name + ".conv3", x, 4 * width, {1, 1});
        const bool projects = stride != 1 || graph_.value(input).shape[3] != 4 * width;
        ValueId shortcut = input;
        if (projects) {
            shortcut = convolution(name + ".downsample.0", input, 4 * width, {1, stride});
            shortcut = norm(name + ".downsample.1", shortcut);
        }
        x = norm(name + ".bn3", x, options_.zero_gamma);
        const tensor::Shape shape = graph_.value(x).shape;
        return relu(name + ".relu3",
                    graph_.add_node(name + ".add", ops::Add{shape}, {x, shortcut}));
    }

    Graph build() {
        const std::int64_t size = options_.image_size;
        ValueId x = graph_.add_input("images", {options_.batch, size, size, options_.channels});
        x = graph_.add_node(
            "normalize",
            ops::InputNormalize{graph_.value(x).shape, options_.mean, options_.standard_deviation},
            {x});
        x = convolution("conv1", x, options_.width, {7, 2});
        x = relu("relu", norm("bn1", x));
        x = graph_.add_node("maxpool", ops::MaxPool{graph_.value(x).shape, 3, 2, 1}, {x});
        for (std::size_t stage = 0; stage < options_.blocks.size(); ++stage) {
            for (int index = 0; index < options_.blocks[stage]; ++index) {
                const std::string name = fmt::format("layer{}.{}", stage + 1, index);
                const std::int64_t stride = stage > 0 && index == 0 ? 2 : 1;
                x = block(name, x, options_.width << stage, stride);
            }
        }
        x = graph_.add_node("avgpool", ops::GlobalAveragePool{graph_.value(x).shape}, {x});
        return head(x);
    }

private:
    Graph head(ValueId features) {
        const tensor::Shape shape = graph_.value(features).shape;
        const auto weight = graph_.add_parameter(
            {"fc.weight", {options_.classes, shape[1]}, ParameterKind::linear_weight});
        const auto bias =
            graph_.add_parameter({"fc.bias", {options_.classes}, ParameterKind::bias});
        const ValueId logits =
            graph_.add_node("fc", ops::Linear{shape, options_.classes}, {features}, {weight, bias});
        const ValueId labels = graph_.add_input("labels", {options_.batch});
        graph_.add_node(
            "loss", ops::SoftmaxCrossEntropy{graph_.value(logits).shape, options_.label_smoothing},
            {logits, labels});
        return std::move(graph_);
    }

    ResNet50 options_;
    Graph graph_;
};

}  // namespace

Graph make_resnet50(const ResNet50& options) {
    return Builder(options).build();
}

}  // namespace hpcai::models
