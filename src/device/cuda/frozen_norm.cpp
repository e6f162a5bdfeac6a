// SPDX-License-Identifier: Apache-2.0
#include "kernels/frozen_norm.hpp"

#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

/// A BatchNorm whose statistics and parameters stay as they are: an affine map of each channel.
/// Saved: its scale and shift, (stored C) f32 each.
class FrozenNormKernel final : public Kernel {
public:
    FrozenNormKernel(const ops::BatchNorm& op, const KernelOptions& options, const Context& context)
        : op_(op),
          context_(context),
          mode_(options.mode),
          shape_{options.compute, 1, op.input[0] * op.input[1] * op.input[2],
                 stored_channels(op.input[3])} {}

    KernelMemory memory() const override { return {2 * vector_bytes(), 0, 0}; }
    std::size_t max_output_gradients() const override { return 2; }
    bool backward_reads_output() const override { return op_.relu; }
    std::vector<ops::Pass> passes() const override {
        if (mode_ == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override {
        tensors_ = tensors;
        auto* saved = static_cast<std::byte*>(tensors.saved);
        scale_ = reinterpret_cast<float*>(saved);
        shift_ = reinterpret_cast<float*>(saved + vector_bytes());
    }

    void run(ops::Pass pass) override {
        if (pass == ops::Pass::forward) {
            prepare_map();
            apply();
            return;
        }
        kernels::frozen_norm_gradient(
            shape_,
            {.y = op_.relu ? tensors_.output : nullptr,
             .dy0 = tensors_.output_gradients[0],
             .dy1 = second_of(tensors_.output_gradients),
             .scale = scale_,
             .dx = tensors_.input_gradients[0],
             .residual_gradient = op_.add ? tensors_.input_gradients[1] : nullptr},
            context_.stream);
    }

private:
    std::size_t vector_bytes() const {
        return rounded_up(static_cast<std::size_t>(shape_.channels) * sizeof(float));
    }

    void prepare_map() const {
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
    }

    void apply() const {
        kernels::batch_norm_apply(shape_,
                                  {.x = tensors_.inputs[0],
                                   .scale = scale_,
                                   .shift = shift_,
                                   .residual = op_.add ? tensors_.inputs[1] : nullptr,
                                   .y = tensors_.output,
                                   .relu = op_.relu},
                                  context_.stream);
    }

    ops::BatchNorm op_;
    const Context& context_;
    Mode mode_;
    kernels::BatchNormShape shape_;
    KernelTensors tensors_;
    float* scale_ = nullptr;
    float* shift_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> build_frozen_norm(const ops::BatchNorm& op, const KernelOptions& options,
                                          const Context& context) {
    return std::make_unique<FrozenNormKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
