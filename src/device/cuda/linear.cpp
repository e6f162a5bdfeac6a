// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/base/error.hpp>

#include "kernels/cast.hpp"
#include "kernels/elementwise.hpp"

#include "context.hpp"
#include "layout.hpp"

namespace hpcai::device::cuda {
namespace {

constexpr std::size_t kMaxWorkspaceBytes = std::size_t{32} << 20;

cudaDataType_t cublas_type(DType dtype) {
    ensure(dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16,
           "cuBLASLt matrix products do not support type {}", name_of(dtype));
    if (dtype == DType::f32) return CUDA_R_32F;
    return dtype == DType::f16 ? CUDA_R_16F : CUDA_R_16BF;
}

using Description = OwnedHandle<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = OwnedHandle<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = OwnedHandle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

template <typename T>
void set(const Description& description, cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value),
          "describing a product");
}

template <typename T>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const T& value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
          "describing a product");
}

/// Describes a matrix (rows, columns), which is stored transposed if `transposed`.
void describe(Layout& layout, DType dtype, std::int64_t rows, std::int64_t columns,
              bool transposed) {
    if (transposed) std::swap(rows, columns);
    check(cublasLtMatrixLayoutCreate(layout.out(), cublas_type(dtype),
                                     static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), rows),
          "describing a matrix");
}

/// d = a b with column-major matrices, as in cuBLAS: d (rows, columns), a (rows, inner)
/// and b (inner, columns). a and b are stored transposed where the flag is set. The leading
/// dimension of a matrix is its stored number of rows; sums are formed in fp32.
struct ProductShape {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t inner = 0;
    bool a_transposed = false;
    bool b_transposed = false;
    DType factors = DType::f32;  // of a and b
    DType result = DType::f32;   // of d
    bool bias = false;           // adds a vector (rows) f32 to every column of d
    bool tf32 = false;           // f32 factors may lose 13 bits
};

/// One matrix product, planned by cuBLASLt's heuristics. Without a device it is not planned and
/// cannot run.
class Product {
public:
    struct Operands {
        const void* a = nullptr;
        const void* b = nullptr;
        void* d = nullptr;
        const float* bias = nullptr;
        void* workspace = nullptr;  // workspace_bytes() at a multiple of 256
    };

    /// Throws Error(internal) if cuBLASLt has no algorithm for the product.
    Product(const ProductShape& s, const Context& context) : has_bias_(s.bias) {
        const auto compute = s.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
        check(cublasLtMatmulDescCreate(description_.out(), compute, CUDA_R_32F),
              "describing a product");
        set(description_, CUBLASLT_MATMUL_DESC_TRANSA, s.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
        set(description_, CUBLASLT_MATMUL_DESC_TRANSB, s.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
        if (s.bias) {
            set(description_, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
            set(description_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F);
        }
        describe(a_, s.factors, s.rows, s.inner, s.a_transposed);
        describe(b_, s.factors, s.inner, s.columns, s.b_transposed);
        describe(d_, s.result, s.rows, s.columns, false);
        heuristic_.workspaceSize = kMaxWorkspaceBytes;
        if (context.has_device()) choose_algorithm(context);
    }

    /// At most 32 MiB; exactly 32 MiB without a device.
    std::size_t workspace_bytes() const { return heuristic_.workspaceSize; }

    /// Enqueues the product on the context's stream. Addresses are multiples of 16.
    void run(const Operands& operands, const Context& context) const {
        if (has_bias_) set(description_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
        const float alpha = 1, beta = 0;
        check(cublasLtMatmul(context.cublas_lt, description_, &alpha, operands.a, a_, operands.b,
                             b_, &beta, operands.d, d_, operands.d, d_, &heuristic_.algo,
                             operands.workspace, heuristic_.workspaceSize, context.stream),
              "running a product");
    }

private:
    void choose_algorithm(const Context& context) {
        Preference preference;
        check(cublasLtMatmulPreferenceCreate(preference.out()), "describing a product");
        set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMaxWorkspaceBytes);
        for (const auto operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                                   CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                   CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                                   CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
            set(preference, operand, std::uint32_t{16});
        }
        int found = 0;
        check(cublasLtMatmulAlgoGetHeuristic(context.cublas_lt, description_, a_, b_, d_, d_,
                                             preference, 1, &heuristic_, &found),
              "planning a product");
        ensure(found > 0, "cuBLASLt has no algorithm for a product");
    }

    Description description_;
    Layout a_, b_, d_;
    cublasLtMatmulHeuristicResult_t heuristic_{};
    bool has_bias_;
};

/// Logits are fp32 for every compute type; their gradient has the compute type. A row-major matrix
/// is the transpose of a cuBLAS matrix. With a ReLU, the workspace begins with the fp32 input of
/// the ReLU; in backward passes it begins with the gradient of this input.
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
                                      .factors = compute,
                                      .bias = true,
                                      .tf32 = tf32},
                         context);
        if (!trains()) return;
        weight_gradient_.emplace(ProductShape{.rows = channels,
                                              .columns = features,
                                              .inner = samples_,
                                              .b_transposed = true,
                                              .factors = compute,
                                              .tf32 = tf32},
                                 context);
        // A product with a column of ones sums over the samples.
        bias_gradient_.emplace(
            ProductShape{.rows = features, .columns = 1, .inner = samples_, .factors = compute},
            context);
        if (!options.needs_input_gradient) return;
        input_gradient_.emplace(ProductShape{.rows = channels,
                                             .columns = samples_,
                                             .inner = features,
                                             .factors = compute,
                                             .result = compute,
                                             .tf32 = tf32},
                                context);
    }

    KernelMemory memory() const override {
        std::size_t product_bytes = 0;
        for (const auto* product :
             {&forward_, &weight_gradient_, &bias_gradient_, &input_gradient_}) {
            if (*product) product_bytes = std::max(product_bytes, (*product)->workspace_bytes());
        }
        return {.prepared_bytes = weight_bytes() + ones_bytes(),
                .workspace_bytes = relu_bytes() + product_bytes};
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
        return options_.compute == DType::f32 ? 0 : array_bytes(weights_, options_.compute);
    }
    std::size_t ones_bytes() const {
        return trains() ? array_bytes(samples_, options_.compute) : 0;
    }

    std::size_t relu_bytes() const { return array_bytes(outputs_); }

    // Has its own kernel for the ReLU, because that of cuBLASLt may turn a NaN into a number.
    void forward() override {
        void* result = op_.relu ? tensors_.workspace : tensors_.output;
        forward_->run(
            {weight_data_, tensors_.inputs[0], result, tensors_.parameters[1], workspace_},
            context_);
        if (!op_.relu) return;
        kernels::relu_from_f32(static_cast<const float*>(result), options_.compute, tensors_.output,
                               outputs_, context_.stream);
    }

    void weight_gradient() override {
        mask_gradient();
        weight_gradient_->run(
            {tensors_.inputs[0], gradient_, tensors_.parameter_gradients[0], nullptr, workspace_},
            context_);
        bias_gradient_->run(
            {gradient_, ones_, tensors_.parameter_gradients[1], nullptr, workspace_}, context_);
    }
    void input_gradient() override {
        mask_gradient();
        input_gradient_->run(
            {weight_data_, gradient_, tensors_.input_gradients[0], nullptr, workspace_}, context_);
    }

    void mask_gradient() const {
        if (!op_.relu) return;
        kernels::relu_gradient({.dtype = options_.compute,
                                .y = tensors_.output,
                                .dy0 = output_gradient(),
                                .dy1 = second_output_gradient(),
                                .dx = gradient_,
                                .count = outputs_},
                               context_.stream);
    }

    void prepare() override {
        if (weight_bytes() > 0) {
            kernels::cast_from_f32(tensors_.parameters[0], options_.compute, weight_data_, weights_,
                                   context_.stream);
        }
        if (ones_bytes() > 0) kernels::fill(options_.compute, ones_, 1, samples_, context_.stream);
    }

    const std::int64_t samples_ = op_.input[0];
    const std::int64_t weights_ = op_.features * op_.input[1];
    const std::int64_t outputs_ = op_.relu ? samples_ * op_.features : 0;  // of the ReLU; 0: none
    std::optional<Product> forward_, weight_gradient_, bias_gradient_, input_gradient_;
    void* weight_data_ = nullptr;
    void* ones_ = nullptr;
    void* workspace_ = nullptr;  // of the products
    void* gradient_ = nullptr;   // gradient of the forward product's result, (N, F)
};

}  // namespace

HPCAI_BUILD_KERNEL(Linear)

}  // namespace hpcai::device::cuda
