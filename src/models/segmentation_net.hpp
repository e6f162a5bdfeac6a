// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/base/rounding.hpp>
#include <hpcai/graph/graph.hpp>

#include "backbone.hpp"

namespace hpcai::models {

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

}  // namespace hpcai::models
