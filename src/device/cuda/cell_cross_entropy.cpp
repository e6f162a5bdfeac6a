// SPDX-License-Identifier: Apache-2.0
#include "kernels/cell_cross_entropy.hpp"

#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

/// Inputs: logits (N, H, W, K) in the compute type, boxes (N, G, 5) f32. Output: softmax
/// (N, H W, K) f32. Saved: the images' losses (N) f32.
class CellCrossEntropyKernel final : public Kernel {
public:
    CellCrossEntropyKernel(const ops::CellCrossEntropy& op, const KernelOptions& options,
                           const Context& context)
        : context_(context),
          options_(options),
          grid_{.images = op.input[0],
                .height = op.input[1],
                .width = op.input[2],
                .stride = op.stride,
                .classes = static_cast<int>(op.input[3]),
                .padded_classes = static_cast<int>(stored_channels(op.input[3])),
                .boxes = static_cast<int>(op.boxes[1]),
                .dtype = options.compute,
                .background_weight = op.background_weight} {}

    KernelMemory memory() const override {
        return {static_cast<std::size_t>(grid_.images) * sizeof(float), 0, 0};
    }
    bool backward_reads_inputs() const override { return true; }  // the boxes
    bool backward_reads_output() const override { return true; }
    std::vector<ops::Pass> passes() const override {
        if (options_.mode == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }

    void run(ops::Pass pass) override {
        const auto* boxes = static_cast<const float*>(tensors_.inputs[1]);
        auto* probabilities = static_cast<float*>(tensors_.output);
        if (pass == ops::Pass::forward) {
            kernels::cell_cross_entropy(grid_,
                                        {.logits = tensors_.inputs[0],
                                         .boxes = boxes,
                                         .probabilities = probabilities,
                                         .losses = static_cast<float*>(tensors_.saved)},
                                        context_.stream);
            return;
        }
        kernels::cell_cross_entropy_gradient(grid_,
                                             {.probabilities = probabilities,
                                              .boxes = boxes,
                                              .loss_scale = tensors_.loss_scale,
                                              .gradient = tensors_.input_gradients[0]},
                                             context_.stream);
    }

private:
    const Context& context_;
    KernelOptions options_;
    kernels::CellGrid grid_;
    KernelTensors tensors_;
};

}  // namespace

std::unique_ptr<Kernel> build_cell_cross_entropy(const ops::CellCrossEntropy& op,
                                                 const KernelOptions& options,
                                                 const Context& context) {
    return std::make_unique<CellCrossEntropyKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
