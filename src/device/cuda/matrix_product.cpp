// SPDX-License-Identifier: Apache-2.0
#include "matrix_product.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/error.hpp>

#include "layout.hpp"
#include "plan_cache.hpp"

namespace hpcai::device::cuda {
namespace {

constexpr std::size_t kMaxWorkspaceBytes = std::size_t{32} << 20;
constexpr int kMaxAlgorithms = 8;

cudaDataType_t cublas_type(DType dtype) {
    ensure(is_floating(dtype), "cuBLASLt matrix products do not support type {}", name_of(dtype));
    if (dtype == DType::f32) return CUDA_R_32F;
    return dtype == DType::f16 ? CUDA_R_16F : CUDA_R_16BF;
}

template <typename T>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute,
         const T& value) {
    check(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value),
          "describing a product");
}

template <typename T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const T& value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
          "describing a product");
}

/// Describes a matrix (rows, columns), which is stored transposed if `transposed`.
void describe(cublasLtMatrixLayout_t* layout, DType dtype, std::int64_t rows, std::int64_t columns,
              bool transposed) {
    if (transposed) std::swap(rows, columns);
    check(cublasLtMatrixLayoutCreate(layout, cublas_type(dtype), static_cast<std::uint64_t>(rows),
                                     static_cast<std::uint64_t>(columns), rows),
          "describing a matrix");
}

/// The key in the plan cache. It has the version of cuBLAS, because another version may list
/// algorithms in another order.
std::string key_of(const ProductShape& s) {
    return fmt::format("product by cuBLAS {} {}x{}x{}{}{} {}{} {}{}{}{}", cublasLtGetVersion(),
                       s.rows, s.columns, s.inner, s.a_transposed ? " a^T" : "",
                       s.b_transposed ? " b^T" : "", name_of(s.operands), s.tf32 ? " tf32" : "",
                       name_of(s.result),
                       s.scales ? " + factor c"
                       : s.adds ? " + c"
                                : "",
                       s.bias ? " + bias" : "", s.relu ? " relu" : "");
}

}  // namespace

Product::Product(const ProductShape& s, const Context& context) : shape_(s) {
    ensure(!s.relu || (s.bias && s.rows % 128 == 0),
           "the ReLU of a product requires a bias and a multiple of 128 rows, not {}", s.rows);
    const auto compute = s.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    check(cublasLtMatmulDescCreate(description_.out(), compute, CUDA_R_32F),
          "describing a product");
    set(description_, CUBLASLT_MATMUL_DESC_TRANSA, s.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(description_, CUBLASLT_MATMUL_DESC_TRANSB, s.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (s.bias) {
        set(description_, CUBLASLT_MATMUL_DESC_EPILOGUE,
            s.relu ? CUBLASLT_EPILOGUE_RELU_AUX_BIAS : CUBLASLT_EPILOGUE_BIAS);
        set(description_, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, cublas_type(s.result));
    }
    if (s.relu) set(description_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, s.rows);
    if (s.scales)
        set(description_, CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE);
    describe(a_.out(), s.operands, s.rows, s.inner, s.a_transposed);
    describe(b_.out(), s.operands, s.inner, s.columns, s.b_transposed);
    describe(d_.out(), s.result, s.rows, s.columns, false);
    algorithm_.workspaceSize = kMaxWorkspaceBytes;
    if (context.has_device()) choose_algorithm(context);
}

void Product::run(const Operands& operands, const Context& context) const {
    if (shape_.bias) set(description_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
    if (shape_.relu) set(description_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.mask);
    const std::array<float, 2> constant{1, shape_.adds ? 1.0f : 0.0f};
    const float* alpha_beta = shape_.scales ? operands.alpha_beta : constant.data();
    check(cublasLtMatmul(context.cublas_lt, description_, alpha_beta, operands.a, a_, operands.b,
                         b_, alpha_beta + 1, shape_.adds ? operands.c : operands.d, d_, operands.d,
                         d_, &algorithm_.algo, operands.workspace, algorithm_.workspaceSize,
                         context.stream),
          "running a product");
}

void Product::choose_algorithm(const Context& context) {
    const auto candidates = algorithms(context);
    ensure(!candidates.empty(), "cuBLASLt has no algorithm for {}", key_of(shape_));
    algorithm_ = candidates[0];
    if (!context.autotune || candidates.size() == 1) return;
    const std::string key = key_of(shape_);
    for (std::size_t index = 0; index < candidates.size(); ++index) {
        if (context.plans->find(key) != std::to_string(index)) continue;
        algorithm_ = candidates[index];
        return;
    }
    const Stopwatch watch;
    try {
        const std::size_t index = fastest(candidates, context);
        algorithm_ = candidates[index];
        context.plans->insert(key, std::to_string(index));
    } catch (const Error&) {  // for example for lack of memory
        rethrow_fault();
        algorithm_ = candidates[0];
    }
    context.tuning->seconds += watch.seconds();
}

std::vector<cublasLtMatmulHeuristicResult_t> Product::algorithms(const Context& context) const {
    OwnedHandle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference;
    check(cublasLtMatmulPreferenceCreate(preference.out()), "describing a product");
    set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMaxWorkspaceBytes);
    for (const auto operand :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
        set(preference, operand, std::uint32_t{16});
    }
    std::vector<cublasLtMatmulHeuristicResult_t> candidates(kMaxAlgorithms);
    int found = 0;
    check(cublasLtMatmulAlgoGetHeuristic(context.cublas_lt, description_, a_, b_, d_, d_,
                                         preference, kMaxAlgorithms, candidates.data(), &found),
          "listing algorithms for a product");
    candidates.resize(static_cast<std::size_t>(found));
    std::erase_if(candidates, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
    return candidates;
}

std::size_t Product::fastest(const std::vector<cublasLtMatmulHeuristicResult_t>& candidates,
                             const Context& context) {
    const auto memory = [&](std::int64_t elements, DType dtype) {  // filled with small numbers
        DeviceBytes bytes(array_bytes(elements, dtype));
        check(cudaMemsetAsync(bytes.data(), 0x2f, bytes.bytes(), context.stream),
              "filling a matrix");
        return bytes;
    };
    const DeviceBytes a = memory(shape_.rows * shape_.inner, shape_.operands);
    const DeviceBytes b = memory(shape_.inner * shape_.columns, shape_.operands);
    const DeviceBytes c = memory(shape_.adds ? shape_.rows * shape_.columns : 1, shape_.result);
    const DeviceBytes d = memory(shape_.rows * shape_.columns, shape_.result);
    const DeviceBytes bias = memory(shape_.rows, shape_.result);
    const DeviceBytes alpha_beta = memory(2, DType::f32);
    const DeviceBytes mask(shape_.relu ? array_bytes(shape_.rows * shape_.columns / 8, DType::u8)
                                       : 256);
    const DeviceBytes workspace(kMaxWorkspaceBytes);
    std::size_t best = 0;
    double best_seconds = 0;
    TimedEvent start, stop;
    for (std::size_t index = 0; index < candidates.size(); ++index) {
        algorithm_ = candidates[index];
        std::array<double, 3> seconds{};
        for (double& repeat : seconds) {  // the first may load code, so the shortest counts
            start.record(context.stream);
            run({a.data(), b.data(), c.data(), static_cast<const float*>(alpha_beta.data()),
                 d.data(), bias.data(), mask.data(), workspace.data()},
                context);
            stop.record(context.stream);
            repeat = stop.seconds_since(start);
        }
        const double shortest = std::ranges::min(seconds);
        if (index > 0 && shortest >= best_seconds) continue;
        best = index;
        best_seconds = shortest;
    }
    return best;
}

}  // namespace hpcai::device::cuda
