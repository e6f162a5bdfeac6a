// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cast.hpp"
#include "kernels/elementwise.hpp"

#include "layout.hpp"
#include "matrix_product.hpp"

namespace hpcai::device::cuda {
namespace {

/// The output is fp32 or, after a ReLU, of the compute type; its gradient has the compute type. A
/// row-major matrix is the transpose of a cuBLAS matrix. With a ReLU, the workspace begins with the
/// ReLU's fp32 input in the forward pass, and with the gradient of this input in backward passes.
class LinearKernel final : public OperationKernel<ops::Linear, Context> {
public:
    LinearKernel(const ops::Linear& op, const KernelOptions& options, const Context& context)
        : OperationKernel(op, options, context) {
        const std::int64_t channels = op.input[1], features = op.features;
        const DType compute = options.compute;
        const bool tf32 = options.tf32 && compute == DType::f32;
        forward_.emplace(ProductShape{.rows = features,
                                      .columns = samples_,
                                      .inner = channels,
                                      .a_transposed = true,
                                      .operands = compute,
                                      .bias = true,
                                      .tf32 = tf32},
                         context);
        if (!trains()) return;
        weight_gradient_.emplace(ProductShape{.rows = channels,
                                              .columns = features,
                                              .inner = samples_,
                                              .b_transposed = true,
                                              .operands = compute,
                                              .tf32 = tf32},
                                 context);
        // A matrix product with a column of ones sums over the samples.
        bias_gradient_.emplace(
            ProductShape{.rows = features, .columns = 1, .inner = samples_, .operands = compute},
            context);
        if (!options.needs_input_gradient) return;
        input_gradient_.emplace(ProductShape{.rows = channels,
                                             .columns = samples_,
                                             .inner = features,
                                             .operands = compute,
                                             .result = compute,
                                             .tf32 = tf32},
                                context);
    }

    KernelMemory memory() const override {
        std::size_t cublas_bytes = 0;
        for (const auto* product :
             {&forward_, &weight_gradient_, &bias_gradient_, &input_gradient_}) {
            if (*product) cublas_bytes = std::max(cublas_bytes, (*product)->workspace_bytes());
        }
        return {.prepared_bytes = weight_bytes() + ones_bytes(),
                .workspace_bytes = relu_bytes() + cublas_bytes};
    }

    void bind(const KernelTensors& tensors) override {
        OperationKernel::bind(tensors);
        weight_data_ = weight_bytes() > 0 ? tensors.prepared : tensors.parameters[0];
        ones_ = static_cast<std::byte*>(tensors.prepared) + weight_bytes();
        workspace_ = static_cast<std::byte*>(tensors.workspace) + relu_bytes();
        if (!trains()) return;
        gradient_ = op_.relu ? tensors.workspace : output_gradient();
    }

    std::vector<WorkingCopy> working_copies() const override {
        if (weight_bytes() == 0) return {};
        return {{0, weight_data_}};
    }

private:
    /// Bytes of the working copy at the start of the prepared memory; the column of ones follows.
    std::size_t weight_bytes() const {
        if (options_.compute == DType::f32) return 0;
        return array_bytes(op_.features * op_.input[1], options_.compute);
    }
    std::size_t ones_bytes() const {
        return trains() ? array_bytes(samples_, options_.compute) : 0;
    }
    std::size_t relu_bytes() const { return array_bytes(relu_outputs_); }

    // The ReLU has its own kernel, because that of cuBLASLt may turn a NaN into a number.
    void forward() override {
        void* result = op_.relu ? tensors_.workspace : tensors_.output;
        forward_->run({.a = weight_data_,
                       .b = tensors_.inputs[0],
                       .d = result,
                       .bias = tensors_.parameters[1],
                       .workspace = workspace_},
                      context_);
        if (!op_.relu) return;
        kernels::relu_from_f32(static_cast<const float*>(result), options_.compute, tensors_.output,
                               relu_outputs_, context_.stream);
    }

    void weight_gradient() override {
        mask_gradient();
        weight_gradient_->run({.a = tensors_.inputs[0],
                               .b = gradient_,
                               .d = tensors_.parameter_gradients[0],
                               .workspace = workspace_},
                              context_);
        bias_gradient_->run({.a = gradient_,
                             .b = ones_,
                             .d = tensors_.parameter_gradients[1],
                             .workspace = workspace_},
                            context_);
    }
    void input_gradient() override {
        mask_gradient();
        input_gradient_->run({.a = weight_data_,
                              .b = gradient_,
                              .d = tensors_.input_gradients[0],
                              .workspace = workspace_},
                             context_);
    }

    void mask_gradient() const {
        if (!op_.relu) return;
        kernels::relu_gradient({.dtype = options_.compute,
                                .y = tensors_.output,
                                .dy0 = output_gradient(),
                                .dy1 = added_output_gradient(),
                                .dx = gradient_,
                                .count = relu_outputs_},
                               context_.stream);
    }

    void prepare() override {
        if (weight_bytes() > 0) {
            const auto channels = static_cast<int>(op_.input[1]);
            kernels::pad_rows({options_.compute, op_.features, channels, channels}, DType::f32,
                              tensors_.parameters[0], weight_data_, context_.stream);
        }
        if (ones_bytes() > 0) kernels::fill(options_.compute, ones_, 1, samples_, context_.stream);
    }

    const std::int64_t samples_ = op_.input[0];
    const std::int64_t relu_outputs_ = op_.relu ? samples_ * op_.features : 0;  // 0 without a ReLU
    std::optional<Product> forward_, weight_gradient_, bias_gradient_, input_gradient_;
    void* weight_data_ = nullptr;
    void* ones_ = nullptr;
    void* workspace_ = nullptr;  // of the matrix products
    void* gradient_ = nullptr;   // gradient of the forward product's result, (N, F)
};

}  // namespace

HPCAI_BUILD_KERNEL(Linear)

}  // namespace hpcai::device::cuda
