// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

/// Adds a bias to each channel of an image. Images and the workspace are 16-byte aligned; sums
/// are fp32 within a block and double over blocks, in a fixed order. Padding channels must
/// be 0 and stay 0.
namespace hpcai::kernels {

struct BiasShape {
    tensor::DType dtype = tensor::DType::f32;  // f32, f16 or bf16
    std::int64_t pixels = 1;                   // N x H x W
    std::int64_t channels = 1;                 // C
    std::int64_t stored_channels = 1;          // in memory, at least C
};

struct BiasArguments {
    const void* x = nullptr;      // (pixels, stored C)
    const float* bias = nullptr;  // (C)
    void* y = nullptr;            // may be x
    bool relu = false;            // keeps NaN
};
/// y = x + bias (+ ReLU).
void bias(const BiasShape& shape, const BiasArguments& arguments, Stream stream);

/// Bytes of the workspace of bias_gradient().
std::size_t bias_workspace_bytes(const BiasShape& shape);

struct BiasGradientArguments {
    const void* y = nullptr;         // the output if there is a ReLU, else null
    const void* dy0 = nullptr;       // the output's gradient is dy0 + dy1
    const void* dy1 = nullptr;       // null: none
    void* dx = nullptr;              // null: not computed; may be dy0 or dy1
    float* bias_gradient = nullptr;  // (C), written
    void* workspace = nullptr;
};
/// dx = 0 where y <= 0, else the output's gradient. The gradient of the bias is the sum over the
/// pixels of dx before rounding.
void bias_gradient(const BiasShape& shape, const BiasGradientArguments& arguments, Stream stream);

}  // namespace hpcai::kernels
