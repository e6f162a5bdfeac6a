// SPDX-License-Identifier: Apache-2.0
#include "kernels/pointwise_norm.hpp"

#include <algorithm>

#include <hpcai/base/error.hpp>

#include "kernels/scratch.hpp"

#include "layout.hpp"
#include "matrix_product.hpp"
#include "whole_batch_norm.hpp"

namespace hpcai::device::cuda {
namespace {

/// The matrices have the names of kernels/pointwise_norm.hpp. Row-major matrices are the transposes
/// of cuBLAS matrices. Saved for the backward pass: the statistics, P, s and, with a ReLU, a mask
/// with one bit per element, set where z > 0.
class PointwiseNormKernel final : public OperationKernel<ops::PointwiseNorm, Context> {
public:
    PointwiseNormKernel(const ops::PointwiseNorm& op, const KernelOptions& options,
                        const Context& context)
        : OperationKernel(op, options, context), norm_(op.norm, options.compute) {
        ensure(trains(), "a fused convolution and norm is supported in training only");
        ensure(op.norm.add == op.norm.relu, "the norm must have an addition and a ReLU or neither");
        const DType compute = options.compute;
        const std::int64_t n = norm_.shape().pixels, k = op.convolution.input[3];
        const std::int64_t c = op.convolution.filters;
        shape_ = {compute, n, k, c};
        constexpr bool kBTransposed = true;
        gram_.emplace(ProductShape{k, k, n, false, kBTransposed, compute}, context);
        products_.emplace(ProductShape{k, c, k}, context);
        forward_.emplace(ProductShape{.rows = c,
                                      .columns = n,
                                      .inner = k,
                                      .a_transposed = true,
                                      .operands = compute,
                                      .result = compute,
                                      .adds = op.norm.add,
                                      .bias = true,
                                      .relu = op.norm.relu},
                         context);
        gradient_products_.emplace(ProductShape{k, c, n, false, kBTransposed, compute}, context);
        weight_products_.emplace(ProductShape{k, k, c, false, kBTransposed}, context);
        from_inputs_.emplace(ProductShape{.rows = k,
                                          .columns = n,
                                          .inner = k,
                                          .operands = compute,
                                          .result = compute,
                                          .bias = true},
                             context);
        from_gradients_.emplace(ProductShape{.rows = k,
                                             .columns = n,
                                             .inner = c,
                                             .operands = compute,
                                             .result = compute,
                                             .adds = true,
                                             .scales = true},
                                context);
    }

    KernelMemory memory() const override {
        return {.saved_bytes = saved_at(nullptr).arrays.bytes(),
                .workspace_bytes = scratch_at(nullptr).arrays.bytes()};
    }

    void bind(const KernelTensors& tensors) override {
        ensure(std::ranges::count(tensors.input_gradients, nullptr) == 0,
               "the kernel has no buffers for the gradients of its inputs");
        OperationKernel::bind(tensors);
        saved_ = saved_at(tensors.saved);
        scratch_ = scratch_at(tensors.workspace);
        norm_.bind(nullptr,
                   {tensors.parameters[1], tensors.parameters[2], tensors.running_mean,
                    tensors.running_variance},
                   saved_.statistics);
    }

private:
    struct Saved {
        kernels::PointwiseShape shape;
        std::size_t statistic_bytes = 0, mask_bytes = 0;
        kernels::Scratch arrays;
        void* statistics = arrays.take<std::byte>(statistic_bytes);
        float* products = arrays.take<float>(shape.outputs * shape.inputs);  // P
        double* sums = arrays.take<double>(shape.inputs);                    // s
        std::uint32_t* mask = arrays.take<std::uint32_t>(mask_bytes / 4);
    };
    struct Scratch {
        kernels::PointwiseShape shape;
        std::size_t cublas_bytes = 0, partial_bytes = 0;
        kernels::Scratch arrays;
        std::int64_t weights = shape.outputs * shape.inputs, squares = shape.inputs * shape.inputs;
        std::int64_t channels = std::max(shape.inputs, shape.outputs);
        std::size_t number_bytes = size_of(shape.dtype);
        void* cublas_workspace = arrays.take<std::byte>(cublas_bytes);
        void* partial_sums = arrays.take<std::byte>(partial_bytes);             // for column_sums()
        float* matrix = arrays.take<float>(shape.inputs * channels);            // S, then G
        float* slope_weights = arrays.take<float>(weights);                     // b w (C, K)
        float* square = arrays.take<float>(squares);                            // M (K, K)
        void* rounded_square = arrays.take<std::byte>(squares * number_bytes);  // f M
        void* scaled_weights = arrays.take<std::byte>(weights * number_bytes);  // (C, K)
        void* bias = arrays.take<std::byte>(channels * number_bytes);           // (C) or (K)
        double* gradient_sums = arrays.take<double>(shape.outputs);             // (C)
        float* slopes = arrays.take<float>(shape.outputs);                      // b (C)
        float* constants = arrays.take<float>(shape.outputs);                   // c (C)
        float* factors = arrays.take<float>(2);  // alpha, beta: 1, 1 / f
    };

    Saved saved_at(void* memory) const {
        return {shape_, norm_.saved_bytes(),
                op_.norm.relu ? batch_norm_mask_bytes(norm_.shape()) : 0, kernels::Scratch(memory)};
    }
    Scratch scratch_at(void* memory) const {
        return {shape_, cublas_bytes(),
                kernels::batch_norm_workspace_bytes(
                    {shape_.dtype, 1, shape_.pixels, std::max(shape_.inputs, shape_.outputs)}),
                kernels::Scratch(memory)};
    }

    std::size_t cublas_bytes() const {
        std::size_t bytes = 0;
        for (const auto* product : {&gram_, &products_, &forward_, &gradient_products_,
                                    &weight_products_, &from_inputs_, &from_gradients_}) {
            bytes = std::max(bytes, (*product)->workspace_bytes());
        }
        return bytes;
    }

    void run(const std::optional<Product>& product, Product::Operands operands) const {
        operands.workspace = scratch_.cublas_workspace;
        product->run(operands, context_);
    }

    const void* x() const { return tensors_.inputs[0]; }
    const float* weights() const { return tensors_.parameters[0]; }

    void forward() override {
        kernels::column_sums({shape_.dtype, 1, shape_.pixels, shape_.inputs},
                             {.x = x(), .sums = saved_.sums, .workspace = scratch_.partial_sums},
                             context_.stream);
        run(gram_, {.a = x(), .b = x(), .d = scratch_.matrix});
        run(products_, {.a = scratch_.matrix, .b = weights(), .d = saved_.products});
        kernels::pointwise_statistics(shape_,
                                      {.weights = weights(),
                                       .products = saved_.products,
                                       .sums = saved_.sums,
                                       .parameters = norm_.parameters(),
                                       .statistics = norm_.statistics(),
                                       .scaled_weights = scratch_.scaled_weights,
                                       .bias = scratch_.bias},
                                      context_.stream);
        run(forward_, {.a = scratch_.scaled_weights,
                       .b = x(),
                       .c = op_.norm.add ? tensors_.inputs[1] : nullptr,
                       .d = tensors_.output,
                       .bias = scratch_.bias,
                       .mask = saved_.mask});
    }

    void input_gradient() override {
        void* const g = op_.norm.add ? tensors_.input_gradients[1] : output_gradient();
        kernels::column_sums(norm_.shape(),
                             {.x = output_gradient(),
                              .second = added_output_gradient(),
                              .mask = op_.norm.relu ? saved_.mask : nullptr,
                              .masked = g,
                              .sums = scratch_.gradient_sums,
                              .workspace = scratch_.partial_sums},
                             context_.stream);
        run(gradient_products_, {.a = x(), .b = g, .d = scratch_.matrix});
        compute_coefficients();
        run(weight_products_, {.a = scratch_.slope_weights, .b = weights(), .d = scratch_.square});
        compute_factors();
        void* const dx = tensors_.input_gradients[0];
        run(from_inputs_, {.a = scratch_.rounded_square, .b = x(), .d = dx, .bias = scratch_.bias});
        const float* const factors = scratch_.factors;
        run(from_gradients_,
            {.a = scratch_.scaled_weights, .b = g, .c = dx, .alpha_beta = factors, .d = dx});
    }

    void compute_coefficients() const {
        kernels::pointwise_gradients(shape_,
                                     {.weights = weights(),
                                      .products = saved_.products,
                                      .sums = saved_.sums,
                                      .gradient_products = scratch_.matrix,
                                      .gradient_sums = scratch_.gradient_sums,
                                      .gamma = norm_.gamma(),
                                      .statistics = norm_.statistics(),
                                      .weight_gradient = tensors_.parameter_gradients[0],
                                      .gamma_gradient = tensors_.parameter_gradients[1],
                                      .beta_gradient = tensors_.parameter_gradients[2],
                                      .scaled_weights = scratch_.scaled_weights,
                                      .y_weights = scratch_.slope_weights,
                                      .slopes = scratch_.slopes,
                                      .constants = scratch_.constants},
                                     context_.stream);
    }

    void compute_factors() const {
        kernels::pointwise_factors(shape_,
                                   {.square = scratch_.square,
                                    .scaled_weights = scratch_.scaled_weights,
                                    .sums = saved_.sums,
                                    .gradient_sums = scratch_.gradient_sums,
                                    .slopes = scratch_.slopes,
                                    .constants = scratch_.constants,
                                    .rounded_square = scratch_.rounded_square,
                                    .bias = scratch_.bias,
                                    .factors = scratch_.factors},
                                   context_.stream);
    }

    WholeBatchNorm norm_;
    kernels::PointwiseShape shape_;
    std::optional<Product> gram_, products_, forward_;  // S, P and z
    // G, M, x M + c w, and dx
    std::optional<Product> gradient_products_, weight_products_, from_inputs_, from_gradients_;
    Saved saved_;
    Scratch scratch_;
};

}  // namespace

HPCAI_BUILD_KERNEL(PointwiseNorm)

}  // namespace hpcai::device::cuda
