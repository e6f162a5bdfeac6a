// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/error.hpp>
#include <hpcai/models/make_model.hpp>

#include "networks.hpp"

namespace hpcai::models {
namespace {

void set_common(const config::Config& config, const ModelInput& input, auto& options) {
    options.batch = input.batch;
    options.channels = config.workload.channels;
    options.input = {tensor::DType::u8, config.data.mean, config.data.standard_deviation};
    options.backbone.zero_gamma = config.training.zero_gamma;
    options.backbone.norm.momentum = config.training.batch_norm_momentum;
    options.backbone.norm.statistics_samples = input.statistics_samples;
}

/// Sets the options that all networks for images with boxes have.
void set_common_with_boxes(const config::Config& config, const ModelInput& input, auto& options) {
    set_common(config, input, options);
    options.image_height = config.workload.image_size;
    options.image_width = image_width(config);
    options.classes = config.workload.classes + 1;
    options.max_boxes = config.data.max_boxes;
    const tensor::DType fallback = has_fields(config.data) ? tensor::DType::f32 : tensor::DType::u8;
    options.input.dtype = input.dtype.value_or(fallback);
}

FasterRcnn faster_rcnn_options(const config::Config& config, const ModelInput& input) {
    FasterRcnn options;
    set_common_with_boxes(config, input, options);
    options.backbone.width = config.workload.backbone_width;
    options.backbone.norm.kind = config.detector.normalization;
    options.backbone.trained_stages = config.detector.trained_stages;
    options.detector = config.detector;
    return options;
}

SegmentationNet segmentation_net_options(const config::Config& config, const ModelInput& input) {
    SegmentationNet options;
    set_common_with_boxes(config, input, options);
    // Storms cover few cells, so with equal weights a short training predicts only background.
    options.background_weight = 0.25;
    return options;
}

using MakeGraph = graph::Graph(const config::Config& config, const ModelInput& input);

struct Row {
    config::Model model;
    MakeGraph* make;
    MakeGraph* make_inference;  // may lack nodes that only training needs
};

graph::Graph resnet50(const config::Config& config, const ModelInput& input) {
    ResNet50 options;
    set_common(config, input, options);
    options.image_size = config.workload.image_size;
    options.classes = config.workload.classes;
    options.label_smoothing = config.training.label_smoothing;
    options.backbone.width = config.workload.backbone_width;
    options.backbone.stride_on_3x3 = config.workload.model == config::Model::resnet50_v1_5;
    std::ranges::copy(config.search.root_blocks, options.backbone.blocks.begin());
    return make_resnet50(options);
}

graph::Graph faster_rcnn(const config::Config& config, const ModelInput& input) {
    return make_faster_rcnn(faster_rcnn_options(config, input));
}

graph::Graph faster_rcnn_inference(const config::Config& config, const ModelInput& input) {
    return make_faster_rcnn_inference(faster_rcnn_options(config, input));
}

graph::Graph segmentation_net(const config::Config& config, const ModelInput& input) {
    return make_segmentation_net(segmentation_net_options(config, input));
}

constexpr std::array kRows{
    Row{config::Model::resnet50_v1, resnet50, resnet50},
    Row{config::Model::resnet50_v1_5, resnet50, resnet50},
    Row{config::Model::faster_rcnn_r50_fpn, faster_rcnn, faster_rcnn_inference},
    Row{config::Model::segmentation_net, segmentation_net, segmentation_net},
};

static_assert(kRows.size() == config::kModels.size());

const Row& row_of(config::Model model) {
    return *std::ranges::find(kRows, model, &Row::model);
}

}  // namespace

graph::Graph make_model(const config::Config& config, const ModelInput& input) {
    return row_of(config.workload.model).make(config, input);
}

graph::Graph make_inference_model(const config::Config& config, const ModelInput& input) {
    return row_of(config.workload.model).make_inference(config, input);
}

int evaluation_rows(const config::Config& config, int training_rows) {
    constexpr int kMaxRows = 32;
    const bool is_classification = task_of(config.workload) == config::Task::classification;
    return is_classification ? kMaxRows : std::min(kMaxRows, training_rows);
}

CellGrid cell_grid(const config::Config& config) {
    ensure(config.workload.model == config::Model::segmentation_net,
           "the configured model does not classify cells");
    const SegmentationNet net = segmentation_net_options(config, {});
    return {net.cell_rows(), net.cell_columns(), SegmentationNet::kCellPixels};
}

}  // namespace hpcai::models
