// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

namespace hpcai::kernels {

/// Batch normalization of activations (spans, pixels, C): y = x * scale + shift (+ r) (+ ReLU),
/// Ioffe and Szegedy 2015. A span is a set of samples that share statistics, or the whole batch.
/// Sums are fp32 within a block and double over blocks, in a fixed order. Activations, statistics
/// and the workspace are 16-byte aligned. Fast if C is a multiple of 8, correct for any C unless
/// stated. "Reads 2, writes 1": elements read and written for each element of x.
struct BatchNormShape {
    tensor::DType dtype = tensor::DType::f32;  // f32, f16 or bf16
    std::int64_t spans = 1;                    // up to 65535
    std::int64_t pixels = 1;                   // of a span: its samples x H x W
    std::int64_t channels = 1;                 // C
};

/// Bytes of the workspace. Statistics use it within one call. Gradients use it from
/// batch_norm_gradient_sums() to batch_norm_gradient_apply().
std::size_t batch_norm_workspace_bytes(const BatchNormShape& shape);

/// Bytes of a mask: a bit for each element in order, from bit 0 of word 0. A bit is 1 where y > 0.
std::size_t batch_norm_mask_bytes(const BatchNormShape& shape);

/// (spans, C) each.
struct BatchNormStatistics {
    float* mean = nullptr;
    float* inverse_deviation = nullptr;  // 1 / sqrt(biased variance + epsilon)
    float* scale = nullptr;              // gamma * inverse_deviation
    float* shift = nullptr;              // beta - mean * scale
};

/// (C) each.
struct BatchNormParameters {
    const float* gamma = nullptr;
    const float* beta = nullptr;
    float* running_mean = nullptr;
    float* running_variance = nullptr;
    double epsilon = 1e-5;
    double momentum = 0.1;
};

struct BatchNormStatisticsArguments {
    const void* x = nullptr;
    BatchNormParameters parameters;
    BatchNormStatistics statistics;  // written
    void* workspace = nullptr;
};
/// Computes the statistics of every span. The running statistics move by `momentum` toward the
/// average mean and unbiased variance of the spans. The sums are of differences from the first
/// pixel of a span, because sums of x would cancel where the mean is large. Reads 1.
void batch_norm_statistics(const BatchNormShape& shape,
                           const BatchNormStatisticsArguments& arguments, Stream stream);

struct BatchNormSumsArguments {
    const float* sum = nullptr;      // (spans, C), sums of x
    const float* squares = nullptr;  // (spans, C), sums of x^2
    BatchNormParameters parameters;
    BatchNormStatistics statistics;  // written
};
/// Computes the statistics of batch_norm_statistics() from sums that a convolution wrote. The
/// variance is then a difference: its relative error is that of `squares` times (1 + mean^2 /
/// variance). A negative variance is set to 0. With an error of 2^-20 of `squares`, in fp32, a mean
/// of 30 deviations leaves three digits of the variance, and a mean of 1000 deviations none.
/// Reads no activation.
void batch_norm_statistics_from_sums(const BatchNormShape& shape,
                                     const BatchNormSumsArguments& arguments, Stream stream);

/// Computes scale and shift of one span from the running statistics, for inference and frozen
/// norms; mean and deviation are not written. Reads no activation.
void batch_norm_running_statistics(std::int64_t channels, const BatchNormParameters& parameters,
                                   const BatchNormStatistics& statistics, Stream stream);

struct BatchNormMomentsArguments {
    const void* x = nullptr;
    double* moments = nullptr;  // (2, C), written: means of x and of x^2
    void* workspace = nullptr;
};
/// Computes the moments of this rank's samples where one span covers several ranks. Ranks have
/// equal batches, so the moments of the span are the means over ranks. fp64 has enough digits for
/// the later subtraction of mean^2. Sums are formed as in batch_norm_statistics(). Reads 1.
void batch_norm_moments(const BatchNormShape& shape, const BatchNormMomentsArguments& arguments,
                        Stream stream);

struct BatchNormSharedMomentsArguments {
    const double* moments = nullptr;  // (2, C), of batch_norm_moments(), summed over `ranks`
    int ranks = 1;
    BatchNormParameters parameters;
    BatchNormStatistics statistics;  // written
};
/// Like batch_norm_statistics(), for the span that covers all `ranks`. Reads no activation.
void batch_norm_statistics_from_moments(const BatchNormShape& shape,
                                        const BatchNormSharedMomentsArguments& arguments,
                                        Stream stream);

struct BatchNormApplyArguments {
    const void* x = nullptr;
    const float* scale = nullptr;           // (spans, C)
    const float* shift = nullptr;           // (spans, C)
    const void* residual = nullptr;         // r, null: none
    const float* residual_scale = nullptr;  // (spans, C), null: r is added unchanged
    const float* residual_shift = nullptr;  // (spans, C), used with residual_scale
    void* y = nullptr;                      // may be x or r
    std::uint32_t* mask = nullptr;          // null: not written
    bool relu = false;
};
/// y = x * scale + shift (+ r) (+ ReLU, which keeps NaN), and the mask of y before rounding.
/// residual_scale is for an r that is normalized too. Reads 1, with r 2; writes 1, and one bit if
/// there is a mask.
void batch_norm_apply(const BatchNormShape& shape, const BatchNormApplyArguments& arguments,
                      Stream stream);

struct BatchNormGradientArguments {
    const void* x = nullptr;
    const void* dy0 = nullptr;  // the output's gradient is dy0 + dy1
    const void* dy1 = nullptr;  // null: none
    const float* gamma = nullptr;
    BatchNormStatistics statistics;       // of the forward pass
    bool relu = false;                    // if no mask: the ReLU passed where x * scale + shift > 0
    const std::uint32_t* mask = nullptr;  // of the forward pass, if a residual was added
    void* residual_gradient = nullptr;    // with a mask: written, gradient of the ReLU's input
    void* dx = nullptr;                   // may be dy0, dy1 or residual_gradient
    float* gamma_gradient = nullptr;      // (C), written
    float* beta_gradient = nullptr;       // (C), written
    const float* coefficients = nullptr;  // (3, spans, C) for dx; null: in the workspace
    std::int64_t statistics_pixels = 0;   // of a span in the forward pass; 0: as in `shape`
    void* workspace = nullptr;
};
/// Computes the gradients of gamma, beta and, with a mask, the residual. Writes the coefficients of
/// the input's gradient to the workspace. `residual_gradient` may be dy0 or dy1. Reads 2, with dy1
/// 3. With a mask, also reads one bit and writes 1.
void batch_norm_gradient_sums(const BatchNormShape& shape,
                              const BatchNormGradientArguments& arguments, Stream stream);

struct BatchNormCoefficientsArguments {
    const double* sums = nullptr;  // (2, C): gradients of gamma and of beta, summed over `ranks`
    int ranks = 1;
    const float* gamma = nullptr;
    BatchNormStatistics statistics;  // of the span that covers all `ranks`
    float* coefficients = nullptr;   // (3, 1, C), written
};
/// Computes the coefficients for batch_norm_gradient_apply() where ranks share statistics. Reads no
/// activation.
void batch_norm_gradient_coefficients(const BatchNormShape& shape,
                                      const BatchNormCoefficientsArguments& arguments,
                                      Stream stream);

/// Computes dx = a * g + b * x + c with the coefficients (a, b, c). For n pixels in a span, dx =
/// gamma / deviation * (g - sum(g) / n - xhat * sum(g * xhat) / n), where xhat = (x - mean) /
/// deviation and g is the gradient of the ReLU's input: with a mask, `residual_gradient`. Needs an
/// earlier call of batch_norm_gradient_sums() with the same arguments, unless `coefficients` is set
/// and there is no mask. Reads 2, with dy1 and no mask 3; writes 1.
void batch_norm_gradient_apply(const BatchNormShape& shape,
                               const BatchNormGradientArguments& arguments, Stream stream);

/// The gradients of y = ReLU(outer(x) + inner(x')), in which outer and inner are norms.
struct BatchNormDualGradientArguments {
    struct Norm {
        const void* x = nullptr;
        const float* gamma = nullptr;
        BatchNormStatistics statistics;   // of the forward pass
        void* dx = nullptr;               // written
        float* gamma_gradient = nullptr;  // (C), written
        float* beta_gradient = nullptr;   // (C), written
    };
    Norm outer, inner;                    // each dx may be dy0 or dy1
    const void* dy0 = nullptr;            // the output's gradient is dy0 + dy1
    const void* dy1 = nullptr;            // null: none
    const std::uint32_t* mask = nullptr;  // of the forward pass
    void* workspace = nullptr;            // batch_norm_dual_workspace_bytes()
};
/// Bytes of the workspace, which is also large enough for the statistics of each norm.
std::size_t batch_norm_dual_workspace_bytes(const BatchNormShape& shape);
/// Computes the gradients of both norms, bitwise equal to those of batch_norm_gradient_sums() and
/// batch_norm_gradient_apply(). inner.dx temporarily holds the gradient of the ReLU's input. Reads
/// 6, with dy1 7, and one bit; writes 3. Throws Error(internal) unless spans is 1 and C a multiple
/// of 8.
void batch_norm_dual_gradient(const BatchNormShape& shape,
                              const BatchNormDualGradientArguments& arguments, Stream stream);

struct FrozenNormGradientArguments {
    const void* y = nullptr;            // the output if there is a ReLU, else null
    const void* dy0 = nullptr;          // the output's gradient is dy0 + dy1
    const void* dy1 = nullptr;          // null: none
    const float* scale = nullptr;       // (C)
    void* dx = nullptr;                 // null: not computed; may be dy0 or dy1
    void* residual_gradient = nullptr;  // null: not computed; may be dy0 or dy1, not dx
};
/// The gradient of y = x * scale + shift (+ r) (+ ReLU) with fixed scale and shift. The gradient of
/// r is that of the output; a ReLU makes it 0 where y <= 0. The gradient of x is `scale` times that
/// of r. Images (pixels, C) are 16-byte aligned; the shape has one span.
void frozen_norm_gradient(const BatchNormShape& shape, const FrozenNormGradientArguments& arguments,
                          Stream stream);

}  // namespace hpcai::kernels
