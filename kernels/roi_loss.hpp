// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

/// ops::RoiLoss. Sums are fp64 in a fixed order. N, S and K must be at least 1.
namespace hpcai::kernels {

struct RoiLossShape {
    int images = 0;   // N, up to 65535
    int samples = 0;  // S, per image
    int classes = 0;  // K
};

struct RoiLossArguments {
    const float* logits = nullptr;   // (N S, K)
    const float* deltas = nullptr;   // (N S, 4 K)
    const float* targets = nullptr;  // (N, S, 9)
    float* losses = nullptr;         // (N, 2), written by roi_loss()

    // For roi_loss_gradient() only.
    const float* loss_scale = nullptr;  // one number in device memory
    tensor::DType dtype = tensor::DType::f32;
    void* logit_gradients = nullptr;  // (N S, K) of dtype; null: not computed
    void* delta_gradients = nullptr;  // (N S, 4 K) likewise
};
void roi_loss(const RoiLossShape& shape, const RoiLossArguments& arguments, Stream stream);
/// Overwrites the gradients with those of the losses times the loss scale.
void roi_loss_gradient(const RoiLossShape& shape, const RoiLossArguments& arguments, Stream stream);

}  // namespace hpcai::kernels
