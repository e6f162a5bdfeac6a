// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <hpcai/base/rounding.hpp>
#include <hpcai/graph/graph.hpp>

#include "layers.hpp"

namespace hpcai::models {

/// ResNet-50 of He et al. 2016 (arXiv 1512.03385, table 1) and its v1.5 variant. The benchmark uses
/// the defaults; smaller widths are for small data sets and tests.
struct ResNet50 {
    std::int64_t batch = 1;  // samples that a rank processes at once
    std::int64_t image_size = 224;
    std::int64_t channels = 3;
    std::int64_t classes = 1000;
    double label_smoothing = 0;
    ImageInput input;
    Backbone backbone;
};

/// Builds the graph from pixels to softmax: inputs "images" (N, H, W, C) uint8 and "labels" (N)
/// int32, output "loss" (N, classes), the softmax. Parameters have torchvision's names.
graph::Graph make_resnet50(const ResNet50& options);

/// A fully convolutional network (Long et al. 2015) that classifies each cell of 8 x 8 pixels: a
/// backbone of one residual block in each stage, the top-down path of a feature pyramid (Lin et al.
/// 2017) from stride 32 to stride 8, and a head of two convolutions.
struct SegmentationNet {
    static constexpr std::int64_t kCellPixels = 8;

    std::int64_t batch = 1;  // samples that a rank processes at once
    std::int64_t image_height = 768;
    std::int64_t image_width = 1152;
    std::int64_t channels = 16;
    std::int64_t classes = 5;     // including background, which is class 0
    std::int64_t max_boxes = 15;  // per image
    ImageInput input;
    Backbone backbone{.width = 16, .blocks = {1, 1, 1, 1}, .norm = {}};
    std::int64_t pyramid_channels = 64;
    double background_weight = 1;  // weight of a background cell in the loss

    std::int64_t cell_rows() const { return ceil_div(image_height, kCellPixels); }
    std::int64_t cell_columns() const { return ceil_div(image_width, kCellPixels); }
};

/// Builds the graph from images and boxes to the softmax of the cells: inputs "images" (N, H, W, C)
/// and "boxes" (N, max_boxes, 5) fp32, output "loss" (N, cell_rows * cell_columns, classes).
graph::Graph make_segmentation_net(const SegmentationNet& options);

/// Faster R-CNN (Ren et al. 2015) on ResNet-50 with a feature pyramid (Lin et al. 2017), as in
/// torchvision's fasterrcnn_resnet50_fpn. The benchmark uses the defaults; smaller widths, anchors
/// and counts are for small images.
struct FasterRcnn {
    std::int64_t batch = 1;  // samples that a rank processes at once
    std::int64_t image_height = 768;
    std::int64_t image_width = 1152;
    std::int64_t channels = 16;
    std::int64_t classes = 5;     // including background, which is class 0
    std::int64_t max_boxes = 15;  // per image
    ImageInput input;
    Backbone backbone;

    std::int64_t pyramid_channels = 256;
    std::int64_t head_features = 1024;
    std::array<double, 5> anchor_sizes = {32, 64, 128, 256, 512};  // pixels, one per level
    std::vector<double> anchor_ratios = {0.5, 1, 2};               // height over width

    std::int64_t anchor_samples = 256;  // per image, for the losses
    std::int64_t region_samples = 512;  // per image, for the box head
    // Per level before non-maximum suppression, and per image after it.
    std::int64_t training_proposals = 2000;
    std::int64_t inference_proposals = 1000;
    double score_threshold = 0.05;
    std::int64_t detections = 100;  // per image
};

/// Inputs in addition to the images. Rows of "boxes": x1, y1, x2, y2 in pixels, class (0: no box).
inline constexpr const char* kBoxesInput = "boxes";  // (N, max_boxes, 5) fp32, training
inline constexpr const char* kKeysInput = "keys";  // (N) int32, training: seeds of random sampling

/// Returns the anchors of the five pyramid levels with strides 4 to 64. An anchor of size s has the
/// area s * s before its coordinates are rounded, half to even. The strides equal torchvision's if
/// the height and width of the image are multiples of 64.
ops::Anchors make_anchors(const FasterRcnn& options);

/// Returns a graph that computes the losses "rpn_loss" and "roi_loss", (N, 2) each, from images (N,
/// H, W, C), boxes and keys. Parameters have torchvision's names.
graph::Graph make_faster_rcnn(const FasterRcnn& options);

/// Returns a graph that computes detections (N, detections, 6) from images; ops::Detections defines
/// their rows. Parameters and statistics equal those of the training graph, in the same order.
graph::Graph make_faster_rcnn_inference(const FasterRcnn& options);

}  // namespace hpcai::models
