// SPDX-License-Identifier: Apache-2.0
#include "kernels/batch_norm.hpp"

#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

/// A BatchNorm with fixed statistics and parameters, so each channel has a scale and a shift.
/// Saved: scale and shift, each f32 of stored_channels(C) elements.
class FrozenNormKernel final : public OperationKernel<ops::BatchNorm, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override { return {.saved_bytes = 2 * vector_bytes()}; }
    void bind(const KernelTensors& tensors) override {
        OperationKernel::bind(tensors);
        scale_ = array_at(tensors.saved, 0, vector_bytes());
        shift_ = array_at(tensors.saved, 1, vector_bytes());
    }

private:
    void forward() override {
        if (op_.input[3] != shape_.channels) {
            check(cudaMemsetAsync(scale_, 0, 2 * vector_bytes(), context_.stream),
                  "padding channels");
        }
        kernels::batch_norm_running_statistics(op_.input[3],
                                               {.gamma = tensors_.parameters[0],
                                                .beta = tensors_.parameters[1],
                                                .running_mean = tensors_.running_mean,
                                                .running_variance = tensors_.running_variance,
                                                .epsilon = op_.epsilon},
                                               {.scale = scale_, .shift = shift_}, context_.stream);
        kernels::batch_norm_apply(shape_,
                                  {.x = tensors_.inputs[0],
                                   .scale = scale_,
                                   .shift = shift_,
                                   .residual = op_.add ? tensors_.inputs[1] : nullptr,
                                   .y = tensors_.output,
                                   .relu = op_.relu},
                                  context_.stream);
    }
    void input_gradient() override {
        kernels::frozen_norm_gradient(
            shape_,
            {.y = op_.relu ? tensors_.output : nullptr,
             .dy0 = output_gradient(),
             .dy1 = added_output_gradient(),
             .scale = scale_,
             .dx = tensors_.input_gradients[0],
             .residual_gradient = op_.add ? tensors_.input_gradients[1] : nullptr},
            context_.stream);
    }

    std::size_t vector_bytes() const { return array_bytes(shape_.channels); }

    const kernels::BatchNormShape shape_{options_.compute, 1,
                                         op_.input[0] * op_.input[1] * op_.input[2],
                                         stored_channels(op_.input[3])};
    float* scale_ = nullptr;
    float* shift_ = nullptr;
};

}  // namespace

KernelPtr build_frozen_norm(const ops::BatchNorm& op, const KernelOptions& options,
                            const Context& context) {
    return std::make_unique<FrozenNormKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
