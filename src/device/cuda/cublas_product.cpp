// SPDX-License-Identifier: Apache-2.0
#include "cublas_product.hpp"

#include <hpcai/base/error.hpp>

#include "owned.hpp"

namespace hpcai::device::cuda {
namespace {

constexpr std::size_t kMaxWorkspaceBytes = std::size_t{32} << 20;

cudaDataType_t cublas_type(DType dtype) {
    ensure(dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16,
           "no matrix products of type {}", name_of(dtype));
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

/// Describes a matrix (rows, columns), stored transposed or not.
void describe(Layout& layout, DType dtype, std::int64_t rows, std::int64_t columns,
              bool transposed) {
    if (transposed) std::swap(rows, columns);
    check(cublasLtMatrixLayoutCreate(layout.out(), cublas_type(dtype),
                                     static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), rows),
          "describing a matrix");
}

}  // namespace

struct Product::Plan {
    Description description;
    Layout a, b, d;
    cublasLtMatmulHeuristicResult_t choice{};
    bool has_bias = false;

    explicit Plan(const ProductShape& s) : has_bias(s.bias) {
        const auto compute = s.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
        check(cublasLtMatmulDescCreate(description.out(), compute, CUDA_R_32F),
              "describing a product");
        set(description, CUBLASLT_MATMUL_DESC_TRANSA, s.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
        set(description, CUBLASLT_MATMUL_DESC_TRANSB, s.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
        if (s.bias) {
            set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
            set(description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F);
        }
        describe(a, s.factors, s.rows, s.inner, s.a_transposed);
        describe(b, s.factors, s.inner, s.columns, s.b_transposed);
        describe(d, s.result, s.rows, s.columns, false);
        choice.workspaceSize = kMaxWorkspaceBytes;
    }

    void choose(const Context& context) {
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
        check(cublasLtMatmulAlgoGetHeuristic(context.cublas_lt, description, a, b, d, d, preference,
                                             1, &choice, &found),
              "planning a product");
        ensure(found > 0, "cuBLASLt has no algorithm for a product");
    }
};

Product::Product() = default;
Product::~Product() = default;
Product::Product(Product&&) noexcept = default;
Product& Product::operator=(Product&&) noexcept = default;

Product::Product(const ProductShape& shape, const Context& context)
    : plan_(std::make_unique<Plan>(shape)) {
    if (context.has_device()) plan_->choose(context);
}

std::size_t Product::workspace_bytes() const {
    return plan_ == nullptr ? 0 : plan_->choice.workspaceSize;
}

void Product::run(const Operands& operands, const Context& context) const {
    if (plan_->has_bias) {
        set(plan_->description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
    }
    const float alpha = 1, beta = 0;
    check(cublasLtMatmul(context.cublas_lt, plan_->description, &alpha, operands.a, plan_->a,
                         operands.b, plan_->b, &beta, operands.d, plan_->d, operands.d, plan_->d,
                         &plan_->choice.algo, operands.workspace, plan_->choice.workspaceSize,
                         context.stream),
          "running a product");
}

}  // namespace hpcai::device::cuda
