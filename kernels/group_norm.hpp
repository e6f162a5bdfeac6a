// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "batch_norm.hpp"

/// Group normalization, Wu and He 2018: what is not the same as in batch normalization, whose spans
/// are the samples here. A group's C / groups channels share their statistics. Activations,
/// statistics and the workspace begin at multiples of 16 bytes; sums are fp32 within a block and
/// double over blocks, always in the same order. Channels that are only stored stay 0.
namespace hpcai::kernels {

struct GroupNormShape {
    BatchNormShape spans;       // a sample each, its channels as they are stored
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
/// Statistics of every sample and channel, as batch_norm_apply() takes them. Reads 1.
void group_norm_statistics(const GroupNormShape& shape,
                           const GroupNormStatisticsArguments& arguments, Stream stream);

struct GroupNormGradientArguments {
    const void* x = nullptr;
    const void* dy0 = nullptr;  // the output's gradient is dy0 + dy1
    const void* dy1 = nullptr;  // null: none
    const float* gamma = nullptr;
    BatchNormStatistics statistics;   // of the forward pass
    bool relu = false;                // the sign of x scale + shift counts
    float* gamma_gradient = nullptr;  // (C), written
    float* beta_gradient = nullptr;   // (C), written
    float* coefficients = nullptr;    // (3, samples, stored C), written: what
                                      // batch_norm_gradient_apply() takes
    void* workspace = nullptr;        // batch_norm_workspace_bytes(spans)
};
/// Gradients of gamma and beta, and the coefficients of the input's: with m numbers in a group and
/// xhat = (x - mean) / deviation,
/// dx = (gamma g - sum(gamma g) / m - xhat sum(gamma g xhat) / m) / deviation. Reads 2, with dy1 3.
void group_norm_gradient_sums(const GroupNormShape& shape,
                              const GroupNormGradientArguments& arguments, Stream stream);

}  // namespace hpcai::kernels
