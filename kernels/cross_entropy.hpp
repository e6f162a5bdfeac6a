// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

namespace hpcai::kernels {

/// Cross-entropy of logits (N, F) against labels (N) in [0, F). The target distribution of a row is
/// s / F, plus 1 - s at the label; label -1 is for padding. Sums are fp64 in a fixed order.
struct SoftmaxShape {
    std::int64_t rows = 0;       // N, 1 to 2^31 - 1
    std::int64_t classes = 0;    // F
    double label_smoothing = 0;  // s
};

struct SoftmaxArguments {
    const float* logits = nullptr;         // (N, F)
    const std::int32_t* labels = nullptr;  // (N)
    float* probabilities = nullptr;        // (N, F)
    float* losses = nullptr;               // (N), 0 for padding
};
/// Writes probabilities, including those of padding rows, and row losses.
void softmax_cross_entropy(const SoftmaxShape& shape, const SoftmaxArguments& arguments,
                           Stream stream);

struct SoftmaxGradientArguments {
    const float* probabilities = nullptr;  // (N, F)
    const std::int32_t* labels = nullptr;  // (N)
    const float* loss_scale = nullptr;     // one number in device memory
    tensor::DType dtype = tensor::DType::f32;
    void* gradient = nullptr;  // (N, F) f32, f16 or bf16
};
/// gradient = loss_scale * (probabilities - target), all 0 for padding.
void softmax_cross_entropy_gradient(const SoftmaxShape& shape,
                                    const SoftmaxGradientArguments& arguments, Stream stream);

/// Adds the losses (rows) to *total, which is in device memory, in a fixed order.
void accumulate_loss(const float* losses, std::int64_t rows, double* total, Stream stream);

/// The sizes of ops::CellCrossEntropy, whose sums are fp64 in a fixed order.
struct CellGrid {
    std::int64_t images = 0;                   // N, 1 to 2^31 - 1
    std::int64_t height = 0;                   // H, cells, at least 1
    std::int64_t width = 0;                    // W, cells, at least 1
    std::int64_t stride = 0;                   // side of a cell in pixels
    int classes = 0;                           // K, including background
    int padded_classes = 0;                    // in memory, at least K
    int boxes = 0;                             // G, per image
    tensor::DType dtype = tensor::DType::f32;  // of logits and their gradients
    double background_weight = 1;
};

struct CellCrossEntropyArguments {
    const void* logits = nullptr;    // (N, H, W, padded classes)
    const float* boxes = nullptr;    // (N, G, 5)
    float* probabilities = nullptr;  // (N, H W, K)
    float* losses = nullptr;         // (N)
};
/// Writes probabilities and losses.
void cell_cross_entropy(const CellGrid& grid, const CellCrossEntropyArguments& arguments,
                        Stream stream);

struct CellCrossEntropyGradientArguments {
    const float* probabilities = nullptr;  // (N, H W, K)
    const float* boxes = nullptr;          // (N, G, 5)
    const float* loss_scale = nullptr;     // one number in device memory
    void* gradient = nullptr;              // (N, H, W, padded classes), the padding 0
};
/// Writes the gradients of the logits: those of the losses times the loss scale.
void cell_cross_entropy_gradient(const CellGrid& grid,
                                 const CellCrossEntropyGradientArguments& arguments, Stream stream);

}  // namespace hpcai::kernels
