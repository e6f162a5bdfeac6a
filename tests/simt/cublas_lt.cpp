// SPDX-License-Identifier: Apache-2.0
// The parts of cuBLASLt that the engine uses, as plain loops on the CPU.
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <cublasLt.h>

#include "kernels/host_numbers.hpp"

#include "simt/numbers.hpp"
#include "simt/streams.hpp"

namespace {

using hpcai::simt::Numbers;
using hpcai::tensor::DType;

constexpr std::size_t kWorkspaceBytes = 1280;

struct Matrix {
    DType dtype = DType::f32;
    std::int64_t rows = 0, columns = 0, leading = 0;

    std::size_t extent() const { return static_cast<std::size_t>(columns * leading); }
    std::size_t at(std::int64_t row, std::int64_t column, bool transposed) const {
        return static_cast<std::size_t>(transposed ? row * leading + column
                                                   : column * leading + row);
    }
};

struct Description {
    bool tf32 = false;
    std::map<int, std::vector<std::byte>> attributes;

    template <typename T>
    T get(cublasLtMatmulDescAttributes_t attribute, T otherwise) const {
        const auto found = attributes.find(attribute);
        if (found != attributes.end()) {
            std::memcpy(&otherwise, found->second.data(), sizeof otherwise);
        }
        return otherwise;
    }
    bool transposes(cublasLtMatmulDescAttributes_t which) const {
        return get(which, CUBLAS_OP_N) == CUBLAS_OP_T;
    }
};

Matrix& matrix(cublasLtMatrixLayout_t layout) {
    return *reinterpret_cast<Matrix*>(layout);
}
Description& description(cublasLtMatmulDesc_t from) {
    return *reinterpret_cast<Description*>(from);
}

bool is_legal(const Description& how, const Matrix& a, const Matrix& b, const Matrix& d) {
    const bool ta = how.transposes(CUBLASLT_MATMUL_DESC_TRANSA);
    const bool tb = how.transposes(CUBLASLT_MATMUL_DESC_TRANSB);
    return (ta ? a.columns : a.rows) == d.rows && (tb ? b.rows : b.columns) == d.columns &&
           (ta ? a.rows : a.columns) == (tb ? b.columns : b.rows) && a.leading >= a.rows &&
           b.leading >= b.rows && d.leading >= d.rows && a.dtype == b.dtype;
}

/// d = a b, plus a bias for each row.
struct Product {
    Description how;
    Matrix a, b, d;
    const void* a_at = nullptr;
    const void* b_at = nullptr;
    void* d_at = nullptr;

    void run() const {
        const bool ta = how.transposes(CUBLASLT_MATMUL_DESC_TRANSA);
        const bool tb = how.transposes(CUBLASLT_MATMUL_DESC_TRANSB);
        const auto epilogue = how.get(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
        const auto* bias = epilogue == CUBLASLT_EPILOGUE_BIAS
                               ? how.get<const float*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr)
                               : nullptr;
        const Numbers left = hpcai::simt::read_numbers(a.dtype, a_at, a.extent(), how.tf32);
        const Numbers right = hpcai::simt::read_numbers(b.dtype, b_at, b.extent(), how.tf32);
        const std::int64_t inner = ta ? a.rows : a.columns;
        for (std::int64_t column = 0; column < d.columns; ++column) {
            for (std::int64_t row = 0; row < d.rows; ++row) {
                double sum = bias == nullptr ? 0 : bias[row];
                for (std::int64_t i = 0; i < inner; ++i) {
                    sum += left[a.at(row, i, ta)] * right[b.at(i, column, tb)];
                }
                hpcai::kernels::reference::put(
                    d.dtype, d_at, static_cast<std::int64_t>(d.at(row, column, false)), sum);
            }
        }
    }
};

/// Rejects a capture before the first run, in which the real library may load kernels and allocate.
bool may_run(const Description& how, const std::vector<Matrix>& matrices, cudaStream_t stream) {
    static std::set<std::string> have_run;
    std::string key = how.tf32 ? "tf32" : "";
    for (const auto which : {CUBLASLT_MATMUL_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSB,
                             CUBLASLT_MATMUL_DESC_EPILOGUE}) {
        key += " " + std::to_string(how.get(which, 0));
    }
    for (const Matrix& one : matrices) {
        key += " " + std::string(name_of(one.dtype));
        for (const auto number : {one.rows, one.columns, one.leading}) {
            key += " " + std::to_string(number);
        }
    }
    if (hpcai::simt::is_captured(stream)) return have_run.contains(key);
    have_run.insert(key);
    return true;
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    *handle = reinterpret_cast<cublasLtHandle_t>(new int(0));
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    delete reinterpret_cast<int*>(handle);
    return CUBLAS_STATUS_SUCCESS;
}
std::size_t cublasLtGetVersion() {
    return CUBLAS_VERSION;
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
    return status == CUBLAS_STATUS_INVALID_VALUE     ? "invalid value"
           : status == CUBLAS_STATUS_NOT_INITIALIZED ? "recorded before it has ever run"
                                                     : "an error";
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading) {
    const DType dtype = type == CUDA_R_32F   ? DType::f32
                        : type == CUDA_R_16F ? DType::f16
                                             : DType::bf16;
    *layout = reinterpret_cast<cublasLtMatrixLayout_t>(new Matrix{
        dtype, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading});
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    delete &matrix(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                        cudaDataType_t) {
    *made = reinterpret_cast<cublasLtMatmulDesc_t>(
        new Description{compute == CUBLAS_COMPUTE_32F_FAST_TF32, {}});
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t from) {
    delete &description(from);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t of,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
    const auto* first = static_cast<const std::byte*>(value);
    description(of).attributes[attribute].assign(first, first + bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
    *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new int(0));
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    delete reinterpret_cast<int*>(preference);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, std::size_t) {
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t how,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
    *found = 0;
    if (wanted < 1 || !is_legal(description(how), matrix(a), matrix(b), matrix(d))) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    results[0] = {};
    results[0].workspaceSize = kWorkspaceBytes;
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t how, const void* alpha,
                              const void* a_at, cublasLtMatrixLayout_t a, const void* b_at,
                              cublasLtMatrixLayout_t b, const void* beta, const void*,
                              cublasLtMatrixLayout_t, void* d_at, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t*, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
    const bool plain =
        *static_cast<const float*>(alpha) == 1 && *static_cast<const float*>(beta) == 0;
    const bool aligned = hpcai::simt::is_aligned(a_at, 16) && hpcai::simt::is_aligned(b_at, 16) &&
                         hpcai::simt::is_aligned(d_at, 16) &&
                         hpcai::simt::is_aligned(workspace, 256);
    if (!plain || !aligned || workspace_bytes < kWorkspaceBytes ||
        !is_legal(description(how), matrix(a), matrix(b), matrix(d))) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (!may_run(description(how), {matrix(a), matrix(b), matrix(d)}, stream)) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    const Product product{description(how), matrix(a), matrix(b), matrix(d), a_at, b_at, d_at};
    hpcai::simt::enqueue(stream, [product, workspace] {
        std::memset(workspace, 0xee, kWorkspaceBytes);  // the previous content is lost
        product.run();
    });
    return CUBLAS_STATUS_SUCCESS;
}
