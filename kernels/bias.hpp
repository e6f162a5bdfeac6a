// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

/// A number for each channel, added to an image. Images and the workspace begin at multiples of 16
/// bytes; sums are fp32 within a block and double over blocks, always in the same order. Channels
/// that are only stored get nothing added.
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
    bool relu = false;            // leaves a NaN one
};
/// y = x + bias (+ ReLU).
void bias(const BiasShape& shape, const BiasArguments& arguments, Stream stream);

/// Scratch of bias_gradient().
std::size_t bias_workspace_bytes(const BiasShape& shape);

struct BiasGradientArguments {
    const void* y = nullptr;         // the output, where there is a ReLU; null: there is none
    const void* dy0 = nullptr;       // the output's gradient is dy0 + dy1
    const void* dy1 = nullptr;       // null: none
    void* dx = nullptr;              // null: not wanted; may be dy0 or dy1
    float* bias_gradient = nullptr;  // (C), written
    void* workspace = nullptr;
};
/// dx = 0 where y <= 0, else the output's gradient; the bias's gradient is its sum over the pixels,
/// before dx is rounded.
void bias_gradient(const BiasShape& shape, const BiasGradientArguments& arguments, Stream stream);

}  // namespace hpcai::kernels
