// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

/// In the functions up to fill(), buffers have `count` elements of `dtype` (f32, f16 or bf16)
/// unless stated, and are 16-byte aligned. Sums are fp32 and rounded once. A result may overwrite
/// an operand.
namespace hpcai::kernels {

struct AddArguments {
    tensor::DType dtype = tensor::DType::f32;
    const void* a = nullptr;
    const void* b = nullptr;  // null: sum = a
    void* sum = nullptr;
    std::int64_t count = 0;
};
/// sum = a + b.
void add(const AddArguments& arguments, Stream stream);

/// y = max(x, 0); NaN stays NaN.
void relu(tensor::DType dtype, const void* x, void* y, std::int64_t count, Stream stream);

/// y = max(x, 0) for fp32 x, rounded to `dtype`; NaN stays NaN. If `dtype` is not f32, x and y must
/// not overlap.
void relu_from_f32(const float* x, tensor::DType dtype, void* y, std::int64_t count, Stream stream);

struct ReluGradientArguments {
    tensor::DType dtype = tensor::DType::f32;
    const void* y = nullptr;    // the output
    const void* dy0 = nullptr;  // the output's gradient is dy0 + dy1
    const void* dy1 = nullptr;  // null: none
    void* dx = nullptr;
    std::int64_t count = 0;
};
/// dx = 0 where y <= 0, else the output's gradient.
void relu_gradient(const ReluGradientArguments& arguments, Stream stream);

/// Sets every element to `value`, rounded to `dtype`.
void fill(tensor::DType dtype, void* to, float value, std::int64_t count, Stream stream);

/// The images of bias() and bias_gradient(). They and the workspace are 16-byte aligned; sums are
/// fp32 within a block and double over blocks, in a fixed order. Padding channels must be 0 and
/// stay 0.
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
    bool relu = false;            // the ReLU keeps NaN
};
/// y = x + bias (+ ReLU).
void bias(const BiasShape& shape, const BiasArguments& arguments, Stream stream);

std::size_t bias_workspace_bytes(const BiasShape& shape);

struct BiasGradientArguments {
    const void* y = nullptr;         // the output if there is a ReLU, else null
    const void* dy0 = nullptr;       // the output's gradient is dy0 + dy1
    const void* dy1 = nullptr;       // null: none
    void* dx = nullptr;              // null: not computed; may be dy0 or dy1
    float* bias_gradient = nullptr;  // (C), written
    void* workspace = nullptr;
};
/// dx = the output's gradient; a ReLU makes it 0 where y <= 0. The gradient of the bias is the sum
/// over the pixels of dx before rounding.
void bias_gradient(const BiasShape& shape, const BiasGradientArguments& arguments, Stream stream);

/// A fine image, to which upsample_add() adds a coarse one. Pixel (i, j) of the fine image reads
/// pixel (i H' / H, j W' / W) of the coarse image, rounded down. Images are 16-byte aligned. Fast
/// if C is a multiple of 8, correct for any C. Functions throw Error(internal) unless each side is
/// 1 to 32768.
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
/// of those of the fine pixels that read it, in fp32 and a fixed order.
void upsample_add_gradient(const UpsampleShape& shape,
                           const UpsampleAddGradientArguments& arguments, Stream stream);

struct NormalizeArguments {
    static constexpr int kMaxChannels = 32;

    const std::uint8_t* pixels = nullptr;  // (count, channels), at any address
    tensor::DType dtype = tensor::DType::f32;
    void* normalized = nullptr;      // (count, padded_channels), 16-byte aligned
    std::int64_t count = 0;          // pixels
    int channels = 0;                // 1 to kMaxChannels
    int padded_channels = 0;         // at least `channels`; 4 is fastest
    float scale[kMaxChannels] = {};  // 1 / (255 * deviation), rounded from fp64
    float shift[kMaxChannels] = {};  // -mean / deviation, rounded from fp64
};

/// normalized = scale * pixel + shift, product and sum rounded to fp32, then to `dtype`. Padding
/// channels are set to 0. Throws Error(internal) for channels beyond the limits above.
void input_normalize(const NormalizeArguments& arguments, Stream stream);

/// Writes Device::hash() of `values` (count) to *sum. Both are in device memory, and `values` are
/// read fastest if they are 16-byte aligned.
void hash(const float* values, std::int64_t count, std::uint64_t* sum, Stream stream);

}  // namespace hpcai::kernels
