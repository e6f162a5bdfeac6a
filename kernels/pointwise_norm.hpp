// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "batch_norm.hpp"

/// The parts of z = ReLU(norm(x w^T) + r) and its gradients that are not products of large
/// matrices, for x (n, K), w (C, K) and r, z (n, C); n is the number of pixels. y = x w^T is never
/// stored. * is the elementwise product:
///
///   S = x^T x, s = the column sums of x, P = w S
///   mean(y) = w s / n, mean(y^2) = the row sums of P * w, divided by n
///   z = ReLU(x (scale w)^T + shift + r)
///
/// The gradient of y is dy = a g + b y + c (batch_norm_gradient_apply), where g is the gradient of
/// the ReLU's input. With G = g^T x, M = w^T (b w), and a, b and c per channel:
///
///   sum(g y) = the row sums of G * w
///   dw = dy^T x = a G + b P + c s
///   dx = dy w   = g (a w) + x M + c w
///
/// A rounding error of a matrix or bias (shift, c w) is the same in all pixels, so it accumulates
/// in sums over pixels. Therefore two means over pixels are preserved: z before the ReLU has the
/// mean beta + mean(r), and dx has the mean 0. Each bias is computed from the rounded matrix, and
/// one element of the matrix compensates the rounding error of the bias. The terms x M and c w of
/// dx are too small for fp16, so they are multiplied by a power of two, f, until g (a w) is added.
/// The ReLU may turn a NaN into 0, but then the statistics or r are NaN as well.
///
/// The relative error of the variance is that of S times (1 + mean(y)^2 / variance), as in
/// batch_norm_statistics_from_sums(). Sums in tensor cores have a relative error of about 2^-15.
namespace hpcai::kernels {

struct PointwiseShape {
    tensor::DType dtype = tensor::DType::f16;  // of x, g and z
    std::int64_t pixels = 0;                   // n
    std::int64_t inputs = 0;                   // K, a multiple of 8
    std::int64_t outputs = 0;                  // C, a multiple of 8
};

struct ColumnSumsArguments {
    const void* x = nullptr;              // (n, C)
    const void* second = nullptr;         // with a mask: added to x; null: none
    const std::uint32_t* mask = nullptr;  // an element whose bit is 0 becomes 0; null: none
    void* masked = nullptr;               // with a mask: written, the elements that are summed
    double* sums = nullptr;               // (C), written
    void* workspace = nullptr;            // batch_norm_workspace_bytes()
};
/// Sums x over its pixels; the shape has one span and a multiple of 8 channels. Reads 1, with
/// `second` 2. With a mask, also reads one bit and writes 1; `masked` may be x or `second`.
void column_sums(const BatchNormShape& shape, const ColumnSumsArguments& arguments, Stream stream);

struct PointwiseStatisticsArguments {
    const float* weights = nullptr;   // w (C, K)
    const float* products = nullptr;  // P (C, K)
    const double* sums = nullptr;     // s (K)
    BatchNormParameters parameters;
    BatchNormStatistics statistics;  // of y, written
    void* scaled_weights = nullptr;  // scale w (C, K), written
    void* bias = nullptr;            // (C), written: beta - mean(x) (scale w)^T
};
/// Computes the statistics of y like batch_norm_statistics_from_sums(), and scale w and bias for z.
void pointwise_statistics(const PointwiseShape& shape,
                          const PointwiseStatisticsArguments& arguments, Stream stream);

struct PointwiseGradientArguments {
    const float* weights = nullptr;            // w (C, K)
    const float* products = nullptr;           // P (C, K)
    const double* sums = nullptr;              // s (K)
    const float* gradient_products = nullptr;  // G (C, K)
    const double* gradient_sums = nullptr;     // sum(g) (C)
    const float* gamma = nullptr;
    BatchNormStatistics statistics;    // of y
    float* weight_gradient = nullptr;  // dw (C, K), written, like all that follow
    float* gamma_gradient = nullptr;   // (C)
    float* beta_gradient = nullptr;    // (C)
    void* scaled_weights = nullptr;    // a w (C, K)
    float* y_weights = nullptr;        // b w (C, K), for M
    float* slopes = nullptr;           // b (C)
    float* constants = nullptr;        // c (C)
};
/// Computes the gradients of the parameters, and a w, b w, b and c for dx.
void pointwise_gradients(const PointwiseShape& shape, const PointwiseGradientArguments& arguments,
                         Stream stream);

struct PointwiseFactorsArguments {
    const float* square = nullptr;          // M (K, K), symmetric
    const void* scaled_weights = nullptr;   // a w (C, K)
    const double* sums = nullptr;           // s (K)
    const double* gradient_sums = nullptr;  // sum(g) (C)
    const float* slopes = nullptr;          // b (C)
    const float* constants = nullptr;       // c (C)
    void* rounded_square = nullptr;         // f M (K, K), written, like all that follow
    void* bias = nullptr;                   // (K): f times the last term of dx
    float* factors = nullptr;               // (2): 1 and 1 / f
};
/// Computes f, and f M and f c w for dx.
void pointwise_factors(const PointwiseShape& shape, const PointwiseFactorsArguments& arguments,
                       Stream stream);

}  // namespace hpcai::kernels
