// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/tensor/dtype.hpp>

#include "anchor_grid.hpp"
#include "stream.hpp"

namespace hpcai::kernels {

/// The sizes of ops::RpnLoss, whose sums are fp64 in a fixed order. N and S must be at least 1.
struct RpnLossShape {
    AnchorGrid grid;
    int images = 0;   // N
    int samples = 0;  // S, per image
};

struct RpnLossArguments {
    RpnOutputs rpn;
    const float* targets = nullptr;  // (N, S, 6)
    float* losses = nullptr;         // (N, 2)
};
void rpn_loss(const RpnLossShape& shape, const RpnLossArguments& arguments, Stream stream);

struct RpnLossGradientArguments {
    RpnOutputs rpn;
    const float* targets = nullptr;             // (N, S, 6), no anchor twice in an image
    const float* loss_scale = nullptr;          // one number in device memory
    void* logits[AnchorGrid::kMaxLevels] = {};  // gradients of rpn.logits; null: not computed
    void* deltas[AnchorGrid::kMaxLevels] = {};  // gradients of rpn.deltas; null: not computed
};
/// Overwrites the gradients of all anchors with those of the losses times the loss scale.
void rpn_loss_gradient(const RpnLossShape& shape, const RpnLossGradientArguments& arguments,
                       Stream stream);

/// The sizes of ops::RoiLoss, whose sums are fp64 in a fixed order. N, S and K must be at least 1.
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
    void* delta_gradients = nullptr;  // (N S, 4 K) of dtype; null: not computed
};
void roi_loss(const RoiLossShape& shape, const RoiLossArguments& arguments, Stream stream);
/// Overwrites the gradients with those of the losses times the loss scale.
void roi_loss_gradient(const RoiLossShape& shape, const RoiLossArguments& arguments, Stream stream);

}  // namespace hpcai::kernels
