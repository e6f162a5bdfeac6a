// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <fmt/core.h>

#include "networks.hpp"

namespace hpcai::models {
namespace {

using graph::ParameterId;
using graph::ParameterKind;
using graph::ValueId;

constexpr std::int64_t kBins = 7;  // RoIAlign pools each region to 7 x 7 bins
// Standard deviation of the initial weights of the region proposal network, as in torchvision.
constexpr double kRpnDeviation = 0.01;

/// Returns the standard deviation of a uniform distribution on [-bound, bound].
double uniform_deviation(double bound) {
    return bound / std::sqrt(3.0);
}

class DetectorBuilder {
public:
    explicit DetectorBuilder(const FasterRcnn& options)
        : options_(options), anchors_(make_anchors(options)) {}

    graph::Graph build_training_graph() {
        const std::vector<ValueId> pyramid = add_pyramid();
        const std::vector<ValueId> rpn = add_rpn_head(pyramid);
        const std::int64_t batch = options_.batch;
        const ValueId boxes =
            graph().add_input(kBoxesInput, {batch, options_.max_boxes, 5}, tensor::DType::f32);
        const ValueId keys = graph().add_input(kKeysInput, {batch}, tensor::DType::s32);
        const ValueId anchor_targets = graph().add_node(
            "anchor_targets",
            ops::AnchorTargets{layers_.shape(boxes), anchors_, options_.detector.anchor_samples},
            {boxes, keys});
        std::vector<ValueId> rpn_loss = rpn;
        rpn_loss.push_back(anchor_targets);
        graph().add_node("rpn_loss", ops::RpnLoss{batch, anchors_, layers_.shape(anchor_targets)},
                         rpn_loss);
        const ValueId proposals = add_proposals(rpn, options_.detector.training_proposals);
        const ValueId regions =
            graph().add_node("roi_targets",
                             ops::RoiTargets{layers_.shape(proposals), layers_.shape(boxes),
                                             options_.detector.region_samples},
                             {proposals, boxes, keys});
        const auto [logits, deltas] = add_box_head(pyramid, regions);
        graph().add_node("roi_loss", ops::RoiLoss{layers_.shape(regions), options_.classes},
                         {logits, deltas, regions});
        return std::move(graph());
    }

    graph::Graph build_inference_graph() {
        const std::vector<ValueId> pyramid = add_pyramid();
        const std::vector<ValueId> rpn = add_rpn_head(pyramid);
        const ValueId proposals = add_proposals(rpn, options_.detector.inference_proposals);
        const auto [logits, deltas] = add_box_head(pyramid, proposals);
        graph().add_node("detections",
                         ops::Detections{.proposals = layers_.shape(proposals),
                                         .classes = options_.classes,
                                         .image_height = options_.image_height,
                                         .image_width = options_.image_width,
                                         .score_threshold = options_.detector.score_threshold,
                                         .limit = options_.detections},
                         {logits, deltas, proposals});
        return std::move(graph());
    }

private:
    graph::Graph& graph() { return layers_.graph(); }

    /// The sizes and parameters of a convolution with bias.
    struct Conv {
        std::int64_t filters = 0;
        std::int64_t kernel = 1;
        ParameterId weight = -1;
        ParameterId bias = -1;
    };

    Conv add_conv(const std::string& name, Conv conv, std::int64_t inputs, double deviation) {
        conv.weight =
            graph().add_parameter({.name = name + ".weight",
                                   .shape = {conv.filters, conv.kernel, conv.kernel, inputs},
                                   .kind = ParameterKind::filters,
                                   .deviation = deviation});
        conv.bias = graph().add_parameter(
            {.name = name + ".bias", .shape = {conv.filters}, .kind = ParameterKind::bias});
        return conv;
    }

    /// Applies the convolution to one level. Several levels may share its parameters.
    ValueId apply(const std::string& name, const Conv& conv, ValueId input, bool relu) {
        const ValueId result = graph().add_node(
            name,
            ops::Convolution{layers_.shape(input), conv.filters, conv.kernel, 1, conv.kernel / 2},
            {input}, {conv.weight});
        return graph().add_node(name + (relu ? ".bias_relu" : ".bias"),
                                ops::Bias{layers_.shape(result), relu}, {result}, {conv.bias});
    }

    ValueId convolution_with_bias(const std::string& name, ValueId input, std::int64_t kernel) {
        const std::int64_t inputs = layers_.shape(input)[3];
        const double fan_in = static_cast<double>(kernel * kernel * inputs);
        const double bound = std::sqrt(3 / fan_in);  // torchvision's kaiming_uniform_ with a = 1
        const Conv conv = add_conv(name, {options_.detector.pyramid_channels, kernel}, inputs,
                                   uniform_deviation(bound));
        return apply(name, conv, input, false);
    }

    /// Adds the backbone and the feature pyramid. Returns the levels P2 to P6.
    std::vector<ValueId> add_pyramid() {
        const ValueId images = layers_.images(
            {options_.batch, options_.image_height, options_.image_width, options_.channels},
            options_.input);
        const auto stages = layers_.backbone("backbone.body.", images, options_.backbone);
        std::vector<ValueId> inner(4), pyramid(4);
        for (std::size_t level = 0; level < 4; ++level) {
            inner[level] = convolution_with_bias(
                fmt::format("backbone.fpn.inner_blocks.{}.0", level), stages[level], 1);
        }
        for (std::size_t level = 3; level-- > 0;) {
            inner[level] = graph().add_node(
                fmt::format("backbone.fpn.top_down.{}", level),
                ops::UpsampleAdd{layers_.shape(inner[level]), layers_.shape(inner[level + 1])},
                {inner[level], inner[level + 1]});
        }
        for (std::size_t level = 0; level < 4; ++level) {
            pyramid[level] = convolution_with_bias(
                fmt::format("backbone.fpn.layer_blocks.{}.0", level), inner[level], 3);
        }
        pyramid.push_back(
            layers_.max_pool("backbone.fpn.pool", pyramid.back(), {.kernel = 1, .stride = 2}));
        return pyramid;
    }

    std::vector<ValueId> apply_to_levels(const std::string& name, const Conv& conv,
                                         const std::vector<ValueId>& levels, bool relu) {
        std::vector<ValueId> outputs;
        for (std::size_t level = 0; level < levels.size(); ++level) {
            outputs.push_back(
                apply(fmt::format("{}.P{}", name, level + 2), conv, levels[level], relu));
        }
        return outputs;
    }

    /// Adds the head of the region proposal network. Returns the logits of all levels, then the
    /// deltas of all levels.
    std::vector<ValueId> add_rpn_head(const std::vector<ValueId>& pyramid) {
        const std::int64_t per_cell = anchors_.per_cell();
        const std::int64_t channels = options_.detector.pyramid_channels;
        const Conv hidden = add_conv("rpn.head.conv.0.0", {channels, 3}, channels, kRpnDeviation);
        const Conv logits = add_conv("rpn.head.cls_logits", {per_cell}, channels, kRpnDeviation);
        const Conv deltas = add_conv("rpn.head.bbox_pred", {4 * per_cell}, channels, kRpnDeviation);
        const auto features = apply_to_levels("rpn.head.conv", hidden, pyramid, true);
        auto outputs = apply_to_levels("rpn.head.cls_logits", logits, features, false);
        const auto level_deltas = apply_to_levels("rpn.head.bbox_pred", deltas, features, false);
        outputs.insert(outputs.end(), level_deltas.begin(), level_deltas.end());
        return outputs;
    }

    ValueId add_proposals(const std::vector<ValueId>& rpn, std::int64_t limit) {
        return graph().add_node(
            "proposals",
            ops::Proposals{
                .batch = options_.batch, .anchors = anchors_, .per_level = limit, .limit = limit},
            rpn);
    }

    struct LinearLayer {
        std::int64_t features = 0;
        bool relu = false;
        std::int64_t pixels = 1;  // the input vector is a flattened image of this many pixels
    };

    ValueId linear(const std::string& name, ValueId input, const LinearLayer& layer) {
        const tensor::Shape shape = layers_.shape(input);
        const double bound = 1 / std::sqrt(static_cast<double>(shape[1]));  // PyTorch's default
        const auto weight = graph().add_parameter({.name = name + ".weight",
                                                   .shape = {layer.features, shape[1]},
                                                   .kind = ParameterKind::linear_weight,
                                                   .deviation = uniform_deviation(bound),
                                                   .pixels = layer.pixels});
        const auto bias = graph().add_parameter(
            {.name = name + ".bias", .shape = {layer.features}, .kind = ParameterKind::bias});
        return graph().add_node(name, ops::Linear{shape, layer.features, layer.relu}, {input},
                                {weight, bias});
    }

    /// Adds the box head. Returns the logits and deltas of the regions.
    std::pair<ValueId, ValueId> add_box_head(const std::vector<ValueId>& pyramid, ValueId regions) {
        std::vector<ValueId> inputs(pyramid.begin(), pyramid.begin() + 4);
        std::vector<tensor::Shape> levels;
        for (const ValueId level : inputs) levels.push_back(layers_.shape(level));
        inputs.push_back(regions);
        ValueId x = graph().add_node("roi_align",
                                     ops::RoiAlign{levels, layers_.shape(regions), kBins}, inputs);
        x = linear("roi_heads.box_head.fc6", x,
                   {options_.detector.head_features, true, kBins * kBins});
        x = linear("roi_heads.box_head.fc7", x, {options_.detector.head_features, true});
        const std::string predictor = "roi_heads.box_predictor.";
        const ValueId logits = linear(predictor + "cls_score", x, {options_.classes});
        return {logits, linear(predictor + "bbox_pred", x, {4 * options_.classes})};
    }

    FasterRcnn options_;
    ops::Anchors anchors_;
    Layers layers_;
};

}  // namespace

ops::Anchors make_anchors(const FasterRcnn& options) {
    ops::Anchors anchors{
        .levels = {}, .image_height = options.image_height, .image_width = options.image_width};
    // Each convolution or pooling of stride 2 rounds the extents up.
    std::int64_t height = (options.image_height + 1) / 2, width = (options.image_width + 1) / 2;
    std::int64_t stride = 2;
    for (const double size : options.detector.anchor_sizes) {
        height = (height + 1) / 2;
        width = (width + 1) / 2;
        stride *= 2;
        ops::Anchors::Level level{height, width, stride, {}};
        for (const double ratio : options.detector.anchor_ratios) {
            const auto half_height = static_cast<float>(std::sqrt(ratio) * size / 2);
            const auto half_width = static_cast<float>(size / std::sqrt(ratio) / 2);
            level.cell_anchors.push_back({std::nearbyint(-half_width), std::nearbyint(-half_height),
                                          std::nearbyint(half_width), std::nearbyint(half_height)});
        }
        anchors.levels.push_back(std::move(level));
    }
    return anchors;
}

graph::Graph make_faster_rcnn(const FasterRcnn& options) {
    return DetectorBuilder(options).build_training_graph();
}

graph::Graph make_faster_rcnn_inference(const FasterRcnn& options) {
    return DetectorBuilder(options).build_inference_graph();
}

}  // namespace hpcai::models
