// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "batch_norm.hpp"

/// Pooling of x (N, H, W, C) of f32, f16 or bf16. Buffers are 16-byte aligned; channels that
/// fill 16-byte vectors are fastest. Results are bitwise repeatable.
namespace hpcai::kernels {

/// Windows of kernel x kernel pixels, with `padding` pixels beyond each border; y is (N, P, Q, C).
struct PoolShape {
    tensor::DType dtype = tensor::DType::f32;
    std::int64_t images = 0;  // N
    int height = 0;           // H
    int width = 0;            // W
    int channels = 0;         // C
    int output_height = 0;    // P
    int output_width = 0;     // Q
    int kernel = 2;           // at most 16
    int stride = 2;
    int padding = 0;  // less than `kernel`
};

/// y = the maximum of each window; winner (N, P, Q, C) = its position, row * kernel + column. Of
/// equal values the first is the maximum; if there are NaNs, the last NaN is, as in PyTorch.
/// `winner` may be null. Throws Error(internal) unless the window is within the limits of PoolShape
/// and y has 1 to 2^31 - 1 rows of pixels (N P).
void max_pool(const PoolShape& shape, const void* x, void* y, std::uint8_t* winner, Stream stream);

struct MaxPoolGradientArguments {
    const std::uint8_t* winner = nullptr;  // (N, P, Q, C)
    const void* dy0 = nullptr;             // y's gradient is dy0 + dy1
    const void* dy1 = nullptr;             // null: none
    void* dx = nullptr;
};
/// dx of a pixel = the fp32 sum of y's gradients over the windows of which the pixel is the
/// maximum. Throws Error(internal) as max_pool() does. For windows other than 3 x 3 with stride 2
/// and padding 1, the limit of rows applies to dx (N H), not to y.
void max_pool_gradient(const PoolShape& shape, const MaxPoolGradientArguments& arguments,
                       Stream stream);

/// The operands of y = max_pool(ReLU(x * scale + shift)). The argument of max_pool is never stored.
struct BatchNormPoolArguments {
    const void* x = nullptr;         // (N, H, W, C)
    BatchNormStatistics statistics;  // of one span
    void* y = nullptr;               // (N, P, Q, C), written, like the next two
    void* winner_x = nullptr;        // x of the maximum
    std::uint8_t* winner = nullptr;  // position of the maximum; 255 unless x * scale + shift > 0
};
/// For finite x, y is bitwise equal to that of batch_norm_apply() and then max_pool(). `winner` may
/// differ if values of y are equal: it has the largest x (the smallest for a negative scale). Reads
/// and writes every tensor once. Throws Error(internal) as max_pool() does, and unless windows are
/// 3 x 3 with stride 2 and padding 1 and C is a multiple of 8.
void batch_norm_pool(const PoolShape& shape, const BatchNormPoolArguments& arguments,
                     Stream stream);

struct BatchNormPoolGradientArguments {
    const void* x = nullptr;               // (N, H, W, C)
    const std::uint8_t* winner = nullptr;  // of batch_norm_pool()
    // norm.x is `winner_x`. dy0 and dy1 are (N, P, Q, C). dx is (N, H, W, C); null: not computed.
    BatchNormGradientArguments norm;
};
/// Computes what batch_norm_gradient_sums() and batch_norm_gradient_apply() compute. g of a pixel
/// is the fp32 sum of y's gradients over the windows of which the pixel is the maximum. Reads
/// winner_x, dy0 and dy1, then x, winner, dy0 and dy1; writes dx. Throws Error(internal) as
/// batch_norm_pool() does.
void batch_norm_pool_gradient(const PoolShape& shape,
                              const BatchNormPoolGradientArguments& arguments, Stream stream);

struct GlobalPoolShape {
    tensor::DType dtype = tensor::DType::f32;
    std::int64_t images = 0;  // N
    std::int64_t pixels = 0;  // H W
    int channels = 0;         // C
};
/// y (N, C) = mean of x over its pixels, formed in fp32.
void global_average_pool(const GlobalPoolShape& shape, const void* x, void* y, Stream stream);
/// dx (N, H, W, C) = dy / (H W).
void global_average_pool_gradient(const GlobalPoolShape& shape, const void* dy, void* dx,
                                  Stream stream);

}  // namespace hpcai::kernels
