// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cast.hpp"
#include "kernels/elementwise.hpp"

#include "cublas_product.hpp"
#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

std::size_t aligned(std::int64_t elements, DType dtype) {
    return rounded_up(static_cast<std::size_t>(elements) * size_of(dtype));
}

/// Logits are fp32 whatever the compute type; their gradient has the compute type. A matrix that
/// is stored row by row is to cuBLAS its transpose. With a ReLU, the workspace begins with the fp32
/// result before it, and backward with what it lets through of the gradient, in each pass.
class LinearKernel final : public Kernel {
public:
    LinearKernel(const ops::Linear& op, const KernelOptions& options, const Context& context)
        : context_(context),
          options_(options),
          samples_(op.input[0]),
          weights_(op.features * op.input[1]),
          outputs_(op.relu ? op.input[0] * op.features : 0) {
        const std::int64_t channels = op.input[1], features = op.features;
        const DType compute = options.compute;
        const bool tf32 = options.tf32 && compute == DType::f32;
        forward_ = Product({.rows = features,
                            .columns = samples_,
                            .inner = channels,
                            .a_transposed = true,
                            .factors = compute,
                            .bias = true,
                            .tf32 = tf32},
                           context);
        if (options.mode == Mode::inference) return;
        weight_gradient_ = Product({.rows = channels,
                                    .columns = features,
                                    .inner = samples_,
                                    .b_transposed = true,
                                    .factors = compute,
                                    .tf32 = tf32},
                                   context);
        // A column of ones adds up the samples.
        bias_gradient_ = Product(
            {.rows = features, .columns = 1, .inner = samples_, .factors = compute}, context);
        if (!options.needs_input_gradient) return;
        input_gradient_ = Product({.rows = channels,
                                   .columns = samples_,
                                   .inner = features,
                                   .factors = compute,
                                   .result = compute,
                                   .tf32 = tf32},
                                  context);
    }

    KernelMemory memory() const override {
        return {
            0, weight_bytes() + ones_bytes(),
            relu_bytes() +
                std::max({forward_.workspace_bytes(), weight_gradient_.workspace_bytes(),
                          bias_gradient_.workspace_bytes(), input_gradient_.workspace_bytes()})};
    }
    std::size_t max_output_gradients() const override { return has_relu() ? 2 : 1; }
    bool backward_reads_output() const override { return has_relu(); }
    bool backward_reads_inputs() const override { return true; }
    std::vector<ops::Pass> passes() const override {
        std::vector<ops::Pass> passes{ops::Pass::prepare, ops::Pass::forward};
        if (options_.mode == Mode::training) {
            passes.push_back(ops::Pass::weight_gradient);
            if (options_.needs_input_gradient) passes.push_back(ops::Pass::input_gradient);
        }
        return passes;
    }

    void bind(const KernelTensors& tensors) override {
        tensors_ = tensors;
        weights_at_ = weight_bytes() > 0 ? tensors.prepared : tensors.parameters[0];
        ones_at_ = static_cast<std::byte*>(tensors.prepared) + weight_bytes();
        workspace_ = static_cast<std::byte*>(tensors.workspace) + relu_bytes();
        if (options_.mode == Mode::inference) return;
        gradient_ = has_relu() ? tensors.workspace : tensors.output_gradients[0];
    }

    std::vector<WorkingCopy> working_copies() const override {
        if (weight_bytes() == 0) return {};
        return {{0, weights_at_}};
    }

    void run(ops::Pass pass) override {
        switch (pass) {
            case ops::Pass::prepare:
                prepare();
                break;
            case ops::Pass::forward:
                forward();
                break;
            case ops::Pass::weight_gradient:
                mask_gradient();
                weight_gradient_.run({tensors_.inputs[0], gradient_,
                                      tensors_.parameter_gradients[0], nullptr, workspace_},
                                     context_);
                bias_gradient_.run(
                    {gradient_, ones_at_, tensors_.parameter_gradients[1], nullptr, workspace_},
                    context_);
                break;
            case ops::Pass::input_gradient:
                mask_gradient();
                input_gradient_.run(
                    {weights_at_, gradient_, tensors_.input_gradients[0], nullptr, workspace_},
                    context_);
                break;
        }
    }

private:
    /// Of the working copy, which lies at the start of the prepared memory; ones follow it.
    std::size_t weight_bytes() const {
        return options_.compute == DType::f32 ? 0 : aligned(weights_, options_.compute);
    }
    std::size_t ones_bytes() const {
        return options_.mode == Mode::training ? aligned(samples_, options_.compute) : 0;
    }

    bool has_relu() const { return outputs_ > 0; }
    std::size_t relu_bytes() const { return aligned(outputs_, DType::f32); }

    // Not cuBLASLt's own ReLU, which need not let a NaN through.
    void forward() const {
        void* result = has_relu() ? tensors_.workspace : tensors_.output;
        forward_.run({weights_at_, tensors_.inputs[0], result, tensors_.parameters[1], workspace_},
                     context_);
        if (!has_relu()) return;
        kernels::relu_of_f32(static_cast<const float*>(result), options_.compute, tensors_.output,
                             outputs_, context_.stream);
    }

    void mask_gradient() const {
        if (!has_relu()) return;
        kernels::relu_gradient({.dtype = options_.compute,
                                .y = tensors_.output,
                                .dy0 = tensors_.output_gradients[0],
                                .dy1 = second_of(tensors_.output_gradients),
                                .dx = gradient_,
                                .count = outputs_},
                               context_.stream);
    }

    void prepare() {
        if (weight_bytes() > 0) {
            kernels::cast_from_f32(tensors_.parameters[0], options_.compute, weights_at_, weights_,
                                   context_.stream);
        }
        if (ones_bytes() > 0) {
            kernels::fill(options_.compute, ones_at_, 1, samples_, context_.stream);
        }
    }

    const Context& context_;
    KernelOptions options_;
    std::int64_t samples_, weights_;
    std::int64_t outputs_;  // of a ReLU
    Product forward_, weight_gradient_, bias_gradient_, input_gradient_;
    KernelTensors tensors_;
    void* weights_at_ = nullptr;
    void* ones_at_ = nullptr;
    void* workspace_ = nullptr;  // of products
    void* gradient_ = nullptr;   // of the result of a product, (N, F)
};

}  // namespace

std::unique_ptr<Kernel> build_linear(const ops::Linear& op, const KernelOptions& options,
                                     const Context& context) {
    return std::make_unique<LinearKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
