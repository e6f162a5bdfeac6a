// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/tensor/dtype.hpp>

namespace hpcai::models {

/// The input images of a model on the device.
struct ImageInput {
    tensor::DType dtype = tensor::DType::u8;  // not u8: the data set has normalized the images
    std::vector<double> mean = {0.485, 0.456, 0.406};  // [channel] of pixels / 255
    std::vector<double> standard_deviation = {0.229, 0.224, 0.225};
};

using Norm = config::Normalization;

struct NormOptions {
    Norm kind = Norm::batch;
    double momentum = 0.1;                // of the running statistics
    std::int64_t statistics_samples = 0;  // samples per set of statistics; 0: the whole batch
};

/// ResNet-50 of He et al. 2016 (arXiv 1512.03385, table 1) without its head. Smaller widths are for
/// small data sets and tests.
struct Backbone {
    std::int64_t width = 64;                   // of the stem and the first stage
    std::array<int, 4> blocks = {3, 4, 6, 3};  // [stage]
    bool stride_on_3x3 = true;                 // v1.5; false: v1, stride on the first 1x1
    bool zero_gamma = true;  // scale of each block's last norm starts at zero (Goyal et al.)
    NormOptions norm;
    int trained_stages = 5;  // the last ones; 5 includes the stem; below 5 only with frozen norms
};

}  // namespace hpcai::models
