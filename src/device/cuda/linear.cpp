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

/// Logits are fp32 in every compute type; their gradient has the compute type. A matrix stored row
/// by row is the transpose of a cuBLAS matrix. With a ReLU, the workspace begins with the fp32
/// input of the ReLU; in backward passes it begins with the gradient of this input.
class LinearKernel final : public OperationKernel<ops::Linear, Context> {
public:
    LinearKernel(const ops::Linear& op, const KernelOptions& options, const Context& context)
        : OperationKernel(op, options, context) {
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
        if (!trains()) return;
        weight_gradient_ = Product({.rows = channels,
                                    .columns = features,
                                    .inner = samples_,
                                    .b_transposed = true,
                                    .factors = compute,
                                    .tf32 = tf32},
                                   context);
        // A product with a column of ones sums over the samples.
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
        const std::size_t products =
            std::max({forward_.workspace_bytes(), weight_gradient_.workspace_bytes(),
                      bias_gradient_.workspace_bytes(), input_gradient_.workspace_bytes()});
        return {.prepared_bytes = weight_bytes() + ones_bytes(),
                .workspace_bytes = relu_bytes() + products};
    }

    void bind(const KernelTensors& tensors) override {
        OperationKernel::bind(tensors);
        weights_at_ = weight_bytes() > 0 ? tensors.prepared : tensors.parameters[0];
        ones_at_ = static_cast<std::byte*>(tensors.prepared) + weight_bytes();
        workspace_ = static_cast<std::byte*>(tensors.workspace) + relu_bytes();
        if (!trains()) return;
        gradient_ = op_.relu ? tensors.workspace : output_gradient();
    }

    std::vector<WorkingCopy> working_copies() const override {
        if (weight_bytes() == 0) return {};
        return {{0, weights_at_}};
    }

private:
    /// Bytes of the working copy at the start of the prepared memory; the column of ones follows.
    std::size_t weight_bytes() const {
        return options_.compute == DType::f32 ? 0 : aligned(weights_, options_.compute);
    }
    std::size_t ones_bytes() const { return trains() ? aligned(samples_, options_.compute) : 0; }

    std::size_t relu_bytes() const { return aligned(outputs_, DType::f32); }

    // cuBLASLt's own ReLU may turn a NaN into a number.
    void forward() override {
        void* result = op_.relu ? tensors_.workspace : tensors_.output;
        forward_.run({weights_at_, tensors_.inputs[0], result, tensors_.parameters[1], workspace_},
                     context_);
        if (!op_.relu) return;
        kernels::relu_of_f32(static_cast<const float*>(result), options_.compute, tensors_.output,
                             outputs_, context_.stream);
    }

    void weight_gradient() override {
        mask_gradient();
        weight_gradient_.run(
            {tensors_.inputs[0], gradient_, tensors_.parameter_gradients[0], nullptr, workspace_},
            context_);
        bias_gradient_.run(
            {gradient_, ones_at_, tensors_.parameter_gradients[1], nullptr, workspace_}, context_);
    }
    void input_gradient() override {
        mask_gradient();
        input_gradient_.run(
            {weights_at_, gradient_, tensors_.input_gradients[0], nullptr, workspace_}, context_);
    }

    void mask_gradient() const {
        if (!op_.relu) return;
        kernels::relu_gradient({.dtype = options_.compute,
                                .y = tensors_.output,
                                .dy0 = output_gradient(),
                                .dy1 = second_gradient(),
                                .dx = gradient_,
                                .count = outputs_},
                               context_.stream);
    }

    void prepare() override {
        if (weight_bytes() > 0) {
            kernels::cast_from_f32(tensors_.parameters[0], options_.compute, weights_at_, weights_,
                                   context_.stream);
        }
        if (ones_bytes() > 0) {
            kernels::fill(options_.compute, ones_at_, 1, samples_, context_.stream);
        }
    }

    const std::int64_t samples_ = op_.input[0];
    const std::int64_t weights_ = op_.features * op_.input[1];
    const std::int64_t outputs_ = op_.relu ? samples_ * op_.features : 0;  // 0 without a ReLU
    Product forward_, weight_gradient_, bias_gradient_, input_gradient_;
    void* weights_at_ = nullptr;
    void* ones_at_ = nullptr;
    void* workspace_ = nullptr;  // of products
    void* gradient_ = nullptr;   // of the result of a product, (N, F)
};

}  // namespace

KernelPtr build(const ops::Linear& op, const KernelOptions& options, const Context& context) {
    return std::make_unique<LinearKernel>(op, options, context);
}

}  // namespace hpcai::device::cuda
