// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "batch_norm.hpp"

namespace hpcai::kernels {

struct FrozenNormGradientArguments {
    const void* y = nullptr;            // the output if there is a ReLU, else null
    const void* dy0 = nullptr;          // the output's gradient is dy0 + dy1
    const void* dy1 = nullptr;          // null: none
    const float* scale = nullptr;       // (C)
    void* dx = nullptr;                 // null: not computed; may be dy0 or dy1
    void* residual_gradient = nullptr;  // null: not computed; may be dy0 or dy1, not dx
};
/// The gradient of y = x scale + shift (+ r) (+ ReLU) with fixed scale and shift: the gradient of r
/// is 0 where y <= 0, else that of the output; the gradient of x is `scale` times that of r. Images
/// (pixels, C) are 16-byte aligned; the shape has one span.
void frozen_norm_gradient(const BatchNormShape& shape, const FrozenNormGradientArguments& arguments,
                          Stream stream);

}  // namespace hpcai::kernels
