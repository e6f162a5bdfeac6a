// SPDX-License-Identifier: Apache-2.0
#include "kernels/softmax_cross_entropy.hpp"

#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

/// Inputs: logits (N, F) f32, labels (N) s32. Output: softmax (N, F) f32. Saved: the loss of each
/// row (N) f32, 0 for padding. Gradient of the logits: (N, F) in the compute type, the row losses'
/// gradients times the loss scale.
class SoftmaxCrossEntropyKernel final : public Kernel {
public:
    SoftmaxCrossEntropyKernel(const ops::SoftmaxCrossEntropy& op, const KernelOptions& options,
                              const Context& context)
        : context_(context),
          options_(options),
          shape_{op.input[0], op.input[1], op.label_smoothing} {}

    KernelMemory memory() const override {
        return {static_cast<std::size_t>(shape_.rows) * sizeof(float), 0, 0};
    }
    bool backward_reads_inputs() const override { return true; }  // the labels
    bool backward_reads_output() const override { return true; }
    std::vector<ops::Pass> passes() const override {
        if (options_.mode == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override { tensors_ = tensors; }

    void run(ops::Pass pass) override {
        const auto* labels = static_cast<const std::int32_t*>(tensors_.inputs[1]);
        auto* probabilities = static_cast<float*>(tensors_.output);
        if (pass == ops::Pass::forward) {
            kernels::softmax_cross_entropy(shape_,
                                           {.logits = static_cast<const float*>(tensors_.inputs[0]),
                                            .labels = labels,
                                            .probabilities = probabilities,
                                            .losses = static_cast<float*>(tensors_.saved)},
                                           context_.stream);
            return;
        }
        kernels::softmax_cross_entropy_gradient(shape_,
                                                {.probabilities = probabilities,
                                                 .labels = labels,
                                                 .loss_scale = tensors_.loss_scale,
                                                 .dtype = options_.compute,
                                                 .gradient = tensors_.input_gradients[0]},
                                                context_.stream);
    }

private:
    const Context& context_;
    KernelOptions options_;
    kernels::SoftmaxShape shape_;
    KernelTensors tensors_;
};

}  // namespace

std::unique_ptr<Kernel> build_softmax_cross_entropy(const ops::SoftmaxCrossEntropy& op,
                                                    const KernelOptions& options,
                                                    const Context& context) {
    return std::make_unique<SoftmaxCrossEntropyKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
