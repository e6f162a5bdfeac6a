// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy.hpp"

#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

/// With F classes. Inputs: logits (N, F) f32, labels (N) s32. Output: softmax (N, F) f32. Saved:
/// the loss of each row (N) f32, 0 for padding rows (label -1). The gradient of the logits, (N, F)
/// in the compute type, is that of the sum of the losses, times the loss scale.
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

/// With K classes and up to G boxes per image. Inputs: logits (N, H, W, K) in the compute type,
/// boxes (N, G, 5) f32. Output: softmax (N, H W, K) f32. Saved: the images' losses (N) f32.
class CellCrossEntropyKernel final : public OperationKernel<ops::CellCrossEntropy, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        return {.saved_bytes = static_cast<std::size_t>(grid_.images) * sizeof(float)};
    }

private:
    void forward() override {
        kernels::cell_cross_entropy(grid_,
                                    {.logits = tensors_.inputs[0],
                                     .boxes = input(1),
                                     .probabilities = output(),
                                     .losses = static_cast<float*>(tensors_.saved)},
                                    context_.stream);
    }
    void input_gradient() override {
        kernels::cell_cross_entropy_gradient(grid_,
                                             {.probabilities = output(),
                                              .boxes = input(1),
                                              .loss_scale = tensors_.loss_scale,
                                              .gradient = tensors_.input_gradients[0]},
                                             context_.stream);
    }

    const kernels::CellGrid grid_{.images = op_.input[0],
                                  .height = op_.input[1],
                                  .width = op_.input[2],
                                  .stride = op_.stride,
                                  .classes = static_cast<int>(op_.input[3]),
                                  .padded_classes = static_cast<int>(stored_channels(op_.input[3])),
                                  .boxes = static_cast<int>(op_.boxes[1]),
                                  .dtype = options_.compute,
                                  .background_weight = op_.background_weight};
};

}  // namespace

HPCAI_BUILD_KERNEL(SoftmaxCrossEntropy)
HPCAI_BUILD_KERNEL(CellCrossEntropy)

}  // namespace hpcai::device::cuda
