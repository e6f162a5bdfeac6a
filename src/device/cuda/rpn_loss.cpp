// SPDX-License-Identifier: Apache-2.0
#include "kernels/rpn_loss.hpp"

#include "detection.hpp"

namespace hpcai::device::cuda {
namespace {

class RpnLossKernel final : public Kernel {
public:
    RpnLossKernel(const kernels::RpnLossShape& shape, const KernelOptions& options,
                  const Context& context)
        : context_(context), options_(options), shape_(shape) {}

    bool backward_reads_inputs() const override { return true; }
    std::vector<ops::Pass> passes() const override {
        if (options_.mode == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override {
        forward_ = {.numbers = anchor_numbers(shape_.grid, options_.compute, tensors.inputs),
                    .targets = static_cast<const float*>(tensors.inputs.back()),
                    .losses = static_cast<float*>(tensors.output)};
        if (options_.mode == Mode::inference) return;
        backward_ = {.numbers = forward_.numbers,
                     .targets = forward_.targets,
                     .loss_scale = tensors.loss_scale};
        const auto levels = static_cast<std::size_t>(shape_.grid.levels);
        for (std::size_t level = 0; level < levels; ++level) {
            backward_.logits[level] = tensors.input_gradients[level];
            backward_.deltas[level] = tensors.input_gradients[levels + level];
        }
    }

    void run(ops::Pass pass) override {
        if (pass == ops::Pass::forward) {
            kernels::rpn_loss(shape_, forward_, context_.stream);
        } else {
            kernels::rpn_loss_gradient(shape_, backward_, context_.stream);
        }
    }

private:
    const Context& context_;
    KernelOptions options_;
    kernels::RpnLossShape shape_;
    kernels::RpnLossArguments forward_;
    kernels::RpnLossGradientArguments backward_;
};

}  // namespace

std::unique_ptr<Kernel> build_rpn_loss(const ops::RpnLoss& op, const KernelOptions& options,
                                       const Context& context) {
    const kernels::RpnLossShape shape{.grid = kernels::make_anchor_grid(op.anchors),
                                      .images = static_cast<int>(op.batch),
                                      .samples = static_cast<int>(op.targets[1])};
    return std::make_unique<RpnLossKernel>(shape, options, context);
}

}  // namespace hpcai::device::cuda
