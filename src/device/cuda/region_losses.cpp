// SPDX-License-Identifier: Apache-2.0
#include "kernels/region_losses.hpp"

#include "detection.hpp"

namespace hpcai::device::cuda {
namespace {

class RpnLossKernel final : public OperationKernel<ops::RpnLoss, Context> {
public:
    using OperationKernel::OperationKernel;

private:
    kernels::RpnOutputs rpn() const {
        return rpn_outputs(shape_.grid, options_.compute, tensors_.inputs);
    }
    const float* targets() const { return input(tensors_.inputs.size() - 1); }

    void forward() override {
        kernels::rpn_loss(shape_, {.rpn = rpn(), .targets = targets(), .losses = output()},
                          context_.stream);
    }
    void input_gradient() override {
        kernels::RpnLossGradientArguments arguments{
            .rpn = rpn(), .targets = targets(), .loss_scale = tensors_.loss_scale};
        const auto levels = static_cast<std::size_t>(shape_.grid.levels);
        for (std::size_t level = 0; level < levels; ++level) {
            arguments.logits[level] = tensors_.input_gradients[level];
            arguments.deltas[level] = tensors_.input_gradients[levels + level];
        }
        kernels::rpn_loss_gradient(shape_, arguments, context_.stream);
    }

    const kernels::RpnLossShape shape_{.grid = kernels::make_anchor_grid(op_.anchors),
                                       .images = static_cast<int>(op_.batch),
                                       .samples = static_cast<int>(op_.targets[1])};
};

class RoiLossKernel final : public OperationKernel<ops::RoiLoss, Context> {
public:
    using OperationKernel::OperationKernel;

private:
    kernels::RoiLossArguments arguments() const {
        return {.logits = input(0), .deltas = input(1), .targets = input(2), .losses = output()};
    }

    void forward() override { kernels::roi_loss(shape_, arguments(), context_.stream); }
    void input_gradient() override {
        kernels::RoiLossArguments backward = arguments();
        backward.loss_scale = tensors_.loss_scale;
        backward.dtype = options_.compute;
        backward.logit_gradients = tensors_.input_gradients[0];
        backward.delta_gradients = tensors_.input_gradients[1];
        kernels::roi_loss_gradient(shape_, backward, context_.stream);
    }

    const kernels::RoiLossShape shape_{static_cast<int>(op_.targets[0]),
                                       static_cast<int>(op_.targets[1]),
                                       static_cast<int>(op_.classes)};
};

}  // namespace

HPCAI_BUILD_KERNEL(RpnLoss)
HPCAI_BUILD_KERNEL(RoiLoss)

}  // namespace hpcai::device::cuda
