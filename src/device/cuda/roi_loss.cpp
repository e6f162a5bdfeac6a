// SPDX-License-Identifier: Apache-2.0
#include "kernels/roi_loss.hpp"

#include "context.hpp"

namespace hpcai::device::cuda {
namespace {

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

KernelPtr build(const ops::RoiLoss& op, const KernelOptions& options, const Context& context) {
    return std::make_unique<RoiLossKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
