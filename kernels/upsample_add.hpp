// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

/// Adds an upsampled coarse image to a fine image. Pixel (i, j) of the fine image reads pixel
/// (i H' / H, j W' / W) of the coarse image, rounded down. Images are 16-byte aligned. Fast for C
/// a multiple of 8, correct for any. Throws Error(internal) unless each side is 1 to 32768.
namespace hpcai::kernels {

struct UpsampleShape {
    tensor::DType dtype = tensor::DType::f32;  // f32, f16 or bf16
    std::int64_t images = 1;
    int height = 1, width = 1;                // of the fine image, H and W
    int coarse_height = 1, coarse_width = 1;  // H' and W'
    int channels = 1;
};

/// y = fine + upsampled coarse, in fp32, rounded once. `y` may be `fine`.
void upsample_add(const UpsampleShape& shape, const void* fine, const void* coarse, void* y,
                  Stream stream);

struct UpsampleAddGradientArguments {
    const void* dy0 = nullptr;        // the output's gradient is dy0 + dy1
    const void* dy1 = nullptr;        // null: none
    void* fine_gradient = nullptr;    // null: not computed; may be dy0 or dy1
    void* coarse_gradient = nullptr;  // null: not computed
};
/// The gradient of the fine image is that of the output. The gradient of a coarse pixel is the sum
/// over the pixels that read it, in fp32 and a fixed order.
void upsample_add_gradient(const UpsampleShape& shape,
                           const UpsampleAddGradientArguments& arguments, Stream stream);

}  // namespace hpcai::kernels
