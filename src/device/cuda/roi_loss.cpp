// SPDX-License-Identifier: Apache-2.0
#include "kernels/roi_loss.hpp"

#include "context.hpp"

namespace hpcai::device::cuda {
namespace {

class RoiLossKernel final : public Kernel {
public:
    RoiLossKernel(const ops::RoiLoss& op, const KernelOptions& options, const Context& context)
        : context_(context),
          options_(options),
          shape_{static_cast<int>(op.targets[0]), static_cast<int>(op.targets[1]),
                 static_cast<int>(op.classes)} {}

    bool backward_reads_inputs() const override { return true; }
    std::vector<ops::Pass> passes() const override {
        if (options_.mode == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override {
        arguments_ = {.logits = static_cast<const float*>(tensors.inputs[0]),
                      .deltas = static_cast<const float*>(tensors.inputs[1]),
                      .targets = static_cast<const float*>(tensors.inputs[2]),
                      .losses = static_cast<float*>(tensors.output)};
        if (options_.mode == Mode::inference) return;
        arguments_.loss_scale = tensors.loss_scale;
        arguments_.dtype = options_.compute;
        arguments_.logit_gradients = tensors.input_gradients[0];
        arguments_.delta_gradients = tensors.input_gradients[1];
    }

    void run(ops::Pass pass) override {
        if (pass == ops::Pass::forward) {
            kernels::roi_loss(shape_, arguments_, context_.stream);
        } else {
            kernels::roi_loss_gradient(shape_, arguments_, context_.stream);
        }
    }

private:
    const Context& context_;
    KernelOptions options_;
    kernels::RoiLossShape shape_;
    kernels::RoiLossArguments arguments_;
};

}  // namespace

std::unique_ptr<Kernel> build_roi_loss(const ops::RoiLoss& op, const KernelOptions& options,
                                       const Context& context) {
    return std::make_unique<RoiLossKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
