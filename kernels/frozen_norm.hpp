// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "batch_norm.hpp"

namespace hpcai::kernels {

struct FrozenNormGradientArguments {
    const void* y = nullptr;            // the output, where there is a ReLU; null: there is none
    const void* dy0 = nullptr;          // the output's gradient is dy0 + dy1
    const void* dy1 = nullptr;          // null: none
    const float* scale = nullptr;       // (C)
    void* dx = nullptr;                 // null: not wanted; may be dy0 or dy1
    void* residual_gradient = nullptr;  // null: not wanted; may be dy0 or dy1, not dx
};
/// Of y = x scale + shift (+ r) (+ ReLU) with scale and shift that stay as they are: r's gradient
/// is 0 where y <= 0, else the output's, and x's is `scale` times that. Images (pixels, C) begin at
/// multiples of 16 bytes; the shape has one span.
void frozen_norm_gradient(const BatchNormShape& shape, const FrozenNormGradientArguments& arguments,
                          Stream stream);

}  // namespace hpcai::kernels
