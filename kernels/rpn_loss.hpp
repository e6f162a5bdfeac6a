// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "anchor_grid.hpp"
#include "stream.hpp"

/// ops::RpnLoss. Sums are fp64 in a fixed order. N and S must be at least 1.
namespace hpcai::kernels {

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
    void* logits[AnchorGrid::kMaxLevels] = {};  // gradients, as rpn.logits; null: not computed
    void* deltas[AnchorGrid::kMaxLevels] = {};  // gradients, as rpn.deltas; null: not computed
};
/// Overwrites the gradients of all anchors with those of the losses times the loss scale.
void rpn_loss_gradient(const RpnLossShape& shape, const RpnLossGradientArguments& arguments,
                       Stream stream);

}  // namespace hpcai::kernels
