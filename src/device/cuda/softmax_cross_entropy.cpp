// SPDX-License-Identifier: Apache-2.0
#include "kernels/softmax_cross_entropy.hpp"

#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

/// Inputs: logits (N, F) f32, labels (N) s32. Output: softmax (N, F) f32. Saved: the loss of each
/// row (N) f32, 0 for padding. Gradient of the logits: (N, F) in the compute type, the row losses'
/// gradients times the loss scale.
class SoftmaxCrossEntropyKernel final : public OperationKernel<ops::SoftmaxCrossEntropy, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        return {.saved_bytes = static_cast<std::size_t>(shape_.rows) * sizeof(float)};
    }

private:
    void forward() override {
        kernels::softmax_cross_entropy(shape_,
                                       {.logits = input(0),
                                        .labels = input<std::int32_t>(1),
                                        .probabilities = output(),
                                        .losses = static_cast<float*>(tensors_.saved)},
                                       context_.stream);
    }
    void input_gradient() override {
        kernels::softmax_cross_entropy_gradient(shape_,
                                                {.probabilities = output(),
                                                 .labels = input<std::int32_t>(1),
                                                 .loss_scale = tensors_.loss_scale,
                                                 .dtype = options_.compute,
                                                 .gradient = tensors_.input_gradients[0]},
                                                context_.stream);
    }

    const kernels::SoftmaxShape shape_{op_.input[0], op_.input[1], op_.label_smoothing};
};

}  // namespace

KernelPtr build(const ops::SoftmaxCrossEntropy& op, const KernelOptions& options,
                const Context& context) {
    return std::make_unique<SoftmaxCrossEntropyKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
