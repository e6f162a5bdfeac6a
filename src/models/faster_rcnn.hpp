// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <hpcai/graph/graph.hpp>

#include "backbone.hpp"

namespace hpcai::models {

/// Faster R-CNN (Ren et al. 2015) on ResNet-50 with a feature pyramid (Lin et al. 2017), as
/// torchvision's fasterrcnn_resnet50_fpn has it. The defaults are the benchmark's; widths, anchors
/// and counts exist so that small images can have a small detector.
struct FasterRcnn {
    std::int64_t batch = 1;  // samples a rank works on at once
    std::int64_t image_height = 768;
    std::int64_t image_width = 1152;
    std::int64_t channels = 16;
    std::int64_t classes = 5;     // background, which is class 0, among them
    std::int64_t max_boxes = 15;  // an image
    ImageInput input;
    Backbone backbone;

    std::int64_t pyramid_channels = 256;
    std::int64_t head_features = 1024;
    std::array<double, 5> anchor_sizes = {32, 64, 128, 256, 512};  // pixels, one a level
    std::vector<double> anchor_ratios = {0.5, 1, 2};               // height over width

    std::int64_t anchor_samples = 256;  // an image, that the losses are taken from
    std::int64_t region_samples = 512;
    std::int64_t training_proposals = 2000;  // a level before suppression, and an image after it
    std::int64_t inference_proposals = 1000;
    double score_threshold = 0.05;
    std::int64_t detections = 100;  // an image
};

/// The names of what feeds it.
inline constexpr const char* kBoxesInput = "boxes";  // (N, max_boxes, 5) fp32, training
inline constexpr const char* kKeysInput = "keys";    // (N) int32, training: draws the samples

/// The reference boxes of its five levels of strides 4 to 64: areas of the sizes' squares, sides
/// rounded half to even. Strides are torchvision's where the image's sides are multiples of 64.
ops::Anchors make_anchors(const FasterRcnn& options);

/// From images (N, H, W, C) and boxes to the losses "rpn_loss" and "roi_loss", (N, 2) each.
/// Parameters carry torchvision's names.
graph::Graph make_faster_rcnn(const FasterRcnn& options);

/// From images to detections (N, detections, 6), with the parameters and statistics of the graph
/// that is trained, in its order.
graph::Graph make_faster_rcnn_inference(const FasterRcnn& options);

}  // namespace hpcai::models
