// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "batch_norm.hpp"

/// Group normalization, Wu and He 2018: the functions that differ from batch normalization. A span
/// is a sample, in which the C / groups channels of a group share statistics. Activations,
/// statistics and the workspace are 16-byte aligned; sums are fp32 within a block and double over
/// blocks, in a fixed order. Padding channels stay 0.
namespace hpcai::kernels {

struct GroupNormShape {
    BatchNormShape spans;       // one per sample, with the stored channels
    std::int64_t channels = 1;  // C
    std::int64_t groups = 1;
};

struct GroupNormStatisticsArguments {
    const void* x = nullptr;
    const float* gamma = nullptr;  // (C)
    const float* beta = nullptr;   // (C)
    double epsilon = 1e-5;
    BatchNormStatistics statistics;  // written
    void* workspace = nullptr;       // batch_norm_workspace_bytes(spans)
};
/// Computes the statistics of every sample and channel for batch_norm_apply(). Reads 1.
void group_norm_statistics(const GroupNormShape& shape,
                           const GroupNormStatisticsArguments& arguments, Stream stream);

struct GroupNormGradientArguments {
    const void* x = nullptr;
    const void* dy0 = nullptr;  // the output's gradient is dy0 + dy1
    const void* dy1 = nullptr;  // null: none
    const float* gamma = nullptr;
    BatchNormStatistics statistics;   // of the forward pass
    bool relu = false;                // the ReLU passed where x * scale + shift > 0
    float* gamma_gradient = nullptr;  // (C), written
    float* beta_gradient = nullptr;   // (C), written
    float* coefficients = nullptr;    // (3, samples, stored C), written
    void* workspace = nullptr;        // batch_norm_workspace_bytes(spans)
};
/// Computes the gradients of gamma and beta, and the coefficients for batch_norm_gradient_apply().
/// For the m numbers of a group, dx = (d - sum(d) / m - xhat * sum(d * xhat) / m) / deviation,
/// where d = gamma * g, g is the gradient of the ReLU's input, and xhat = (x - mean) / deviation.
/// Reads 2, with dy1 3.
void group_norm_gradient_sums(const GroupNormShape& shape,
                              const GroupNormGradientArguments& arguments, Stream stream);

}  // namespace hpcai::kernels
