// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <hpcai/graph/graph.hpp>

namespace hpcai::models {

/// ResNet-50 of He et al. 2016 (arXiv 1512.03385, table 1) and its v1.5 variant. The benchmark uses
/// the defaults; smaller widths are for tests.
struct ResNet50 {
    std::int64_t batch = 1;  // samples that a rank processes at once
    std::int64_t image_size = 224;
    std::int64_t channels = 3;
    std::int64_t classes = 1000;
    bool stride_on_3x3 = true;  // v1.5; false: v1, stride on the first 1x1
    bool zero_gamma = true;     // scale of each block's last norm starts at zero (Goyal et al.)
    double label_smoothing = 0;
    double norm_momentum = 0.1;
    std::int64_t statistics_samples = 0;  // samples per set of statistics; 0: the whole batch
    std::vector<double> mean = {0.485, 0.456, 0.406};
    std::vector<double> standard_deviation = {0.229, 0.224, 0.225};
    std::int64_t width = 64;                   // of the stem and the first stage
    std::array<int, 4> blocks = {3, 4, 6, 3};  // [stage]
};

/// Builds the graph from pixels to softmax: inputs "images" (N, H, W, C) uint8 and "labels" (N)
/// int32, output "loss" (N, classes), the softmax. Parameters have torchvision's names.
graph::Graph make_resnet50(const ResNet50& options);

}  // namespace hpcai::models
