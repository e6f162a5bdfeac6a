// SPDX-License-Identifier: Apache-2.0
#include "kernels/group_norm.hpp"

#include "whole_batch_norm.hpp"

namespace hpcai::device::cuda {
namespace {

/// Per-channel values are fp32 arrays of (N, stored_channels(C)). Saved: the statistics. Workspace:
/// scratch memory for the kernels of both passes, then in training three arrays of coefficients.
class GroupNormKernel final : public OperationKernel<ops::GroupNorm, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        const std::size_t coefficient_bytes = trains() ? 3 * statistic_bytes() : 0;
        return {.saved_bytes = 4 * statistic_bytes(),
                .workspace_bytes = scratch_bytes() + coefficient_bytes};
    }
    void bind(const KernelTensors& tensors) override {
        OperationKernel::bind(tensors);
        statistics_ = statistics_at(tensors.saved, statistic_bytes());
        coefficients_ = array_at(tensors.workspace, 1, scratch_bytes());
    }

private:
    std::size_t statistic_bytes() const {
        return array_bytes(shape_.spans.spans * shape_.spans.channels);
    }
    std::size_t scratch_bytes() const {
        return rounded_up(batch_norm_workspace_bytes(shape_.spans));
    }

    void forward() override {
        kernels::group_norm_statistics(shape_,
                                       {.x = tensors_.inputs[0],
                                        .gamma = tensors_.parameters[0],
                                        .beta = tensors_.parameters[1],
                                        .epsilon = op_.epsilon,
                                        .statistics = statistics_,
                                        .workspace = tensors_.workspace},
                                       context_.stream);
        kernels::batch_norm_apply(shape_.spans,
                                  {.x = tensors_.inputs[0],
                                   .scale = statistics_.scale,
                                   .shift = statistics_.shift,
                                   .y = tensors_.output,
                                   .relu = op_.relu},
                                  context_.stream);
    }

    void input_gradient() override {
        kernels::group_norm_gradient_sums(shape_,
                                          {.x = tensors_.inputs[0],
                                           .dy0 = output_gradient(),
                                           .dy1 = added_output_gradient(),
                                           .gamma = tensors_.parameters[0],
                                           .statistics = statistics_,
                                           .relu = op_.relu,
                                           .gamma_gradient = tensors_.parameter_gradients[0],
                                           .beta_gradient = tensors_.parameter_gradients[1],
                                           .coefficients = coefficients_,
                                           .workspace = tensors_.workspace},
                                          context_.stream);
        if (tensors_.input_gradients[0] == nullptr) return;
        kernels::batch_norm_gradient_apply(shape_.spans,
                                           {.x = tensors_.inputs[0],
                                            .dy0 = output_gradient(),
                                            .dy1 = added_output_gradient(),
                                            .statistics = statistics_,
                                            .relu = op_.relu,
                                            .dx = tensors_.input_gradients[0],
                                            .coefficients = coefficients_},
                                           context_.stream);
    }

    const kernels::GroupNormShape shape_{
        .spans = {options_.compute, op_.input[0], op_.input[1] * op_.input[2],
                  stored_channels(op_.input[3])},
        .channels = op_.input[3],
        .groups = op_.groups};
    kernels::BatchNormStatistics statistics_;
    float* coefficients_ = nullptr;  // (3, N, stored_channels(C))
};

}  // namespace

HPCAI_BUILD_KERNEL(GroupNorm)

}  // namespace hpcai::device::cuda
