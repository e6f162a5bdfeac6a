// SPDX-License-Identifier: Apache-2.0
#include "whole_batch_norm.hpp"

namespace hpcai::device::cuda {
namespace {

/// y = max(outer(x) + inner(r), 0) with two BatchNorms. Saved for the backward pass: the statistics
/// of both norms, and a mask with one bit per element, set where y > 0.
class DualNormKernel final : public OperationKernel<ops::DualNorm, Context> {
public:
    DualNormKernel(const ops::DualNorm& op, const KernelOptions& options, const Context& context)
        : OperationKernel(op, options, context),
          outer_(op.outer, options.compute),
          inner_(op.inner, options.compute) {
        ensure(trains(), "fused norms are supported in training only");
        ensure(op.outer.relu && op.outer.add && !op.inner.relu && !op.inner.add,
               "the outer norm must have an addition and a ReLU, the inner norm neither");
    }

    KernelMemory memory() const override {
        return {.saved_bytes = 2 * outer_.saved_bytes() + batch_norm_mask_bytes(outer_.shape()),
                .workspace_bytes = batch_norm_dual_workspace_bytes(outer_.shape())};
    }

    void bind(const KernelTensors& tensors) override {
        ensure(tensors.input_gradients[0] != nullptr && tensors.input_gradients[1] != nullptr,
               "the kernel has no buffers for the gradients of both fused norms");
        OperationKernel::bind(tensors);
        auto* saved = static_cast<std::byte*>(tensors.saved);
        outer_.bind(tensors.inputs[0],
                    {tensors.parameters[0], tensors.parameters[1], tensors.running_mean,
                     tensors.running_variance},
                    saved);
        inner_.bind(tensors.inputs[1],
                    {tensors.parameters[2], tensors.parameters[3], tensors.inner_running_mean,
                     tensors.inner_running_variance},
                    saved + outer_.saved_bytes());
        mask_ = reinterpret_cast<std::uint32_t*>(saved + 2 * outer_.saved_bytes());
    }

private:
    void forward() override {
        outer_.compute_statistics(tensors_.workspace, context_.stream);
        inner_.compute_statistics(tensors_.workspace, context_.stream);
        kernels::batch_norm_apply(outer_.shape(),
                                  {.x = outer_.x(),
                                   .scale = outer_.statistics().scale,
                                   .shift = outer_.statistics().shift,
                                   .residual = inner_.x(),
                                   .residual_scale = inner_.statistics().scale,
                                   .residual_shift = inner_.statistics().shift,
                                   .y = tensors_.output,
                                   .mask = mask_,
                                   .relu = true},
                                  context_.stream);
    }
    void input_gradient() override {
        kernels::batch_norm_dual_gradient(outer_.shape(),
                                          {.outer = gradient_arguments(outer_, 0),
                                           .inner = gradient_arguments(inner_, 1),
                                           .dy0 = output_gradient(),
                                           .dy1 = added_output_gradient(),
                                           .mask = mask_,
                                           .workspace = tensors_.workspace},
                                          context_.stream);
    }

    /// `index` is 0 for the outer norm, 1 for the inner one.
    kernels::BatchNormDualGradientArguments::Norm gradient_arguments(const WholeBatchNorm& norm,
                                                                     std::size_t index) const {
        return {.x = norm.x(),
                .gamma = norm.gamma(),
                .statistics = norm.statistics(),
                .dx = tensors_.input_gradients[index],
                .gamma_gradient = tensors_.parameter_gradients[2 * index],
                .beta_gradient = tensors_.parameter_gradients[2 * index + 1]};
    }

    WholeBatchNorm outer_, inner_;
    std::uint32_t* mask_ = nullptr;
};

}  // namespace

HPCAI_BUILD_KERNEL(DualNorm)

}  // namespace hpcai::device::cuda
