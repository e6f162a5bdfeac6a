// SPDX-License-Identifier: Apache-2.0
#include "kernels/cell_cross_entropy.hpp"

#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

/// Inputs: logits (N, H, W, K) in the compute type, boxes (N, G, 5) f32. Output: softmax
/// (N, H W, K) f32. Saved: the images' losses (N) f32.
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

KernelPtr build(const ops::CellCrossEntropy& op, const KernelOptions& options,
                const Context& context) {
    return std::make_unique<CellCrossEntropyKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
