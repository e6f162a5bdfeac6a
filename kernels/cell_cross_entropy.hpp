// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

/// ops::CellCrossEntropy. Sums are fp64 in a fixed order.
namespace hpcai::kernels {

struct CellGrid {
    std::int64_t images = 0;                   // N, 1 to 2^31 - 1
    std::int64_t height = 0;                   // H, cells, at least 1
    std::int64_t width = 0;                    // W, cells, at least 1
    std::int64_t stride = 0;                   // side of a cell in pixels
    int classes = 0;                           // K, including background
    int padded_classes = 0;                    // elements from cell to cell
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
/// Overwrites the gradients with those of the losses times the loss scale.
void cell_cross_entropy_gradient(const CellGrid& grid,
                                 const CellCrossEntropyGradientArguments& arguments, Stream stream);

}  // namespace hpcai::kernels
