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

/// d = a b, plus a matrix c and a bias for each row, then a ReLU.
struct Product {
    Description how;
    Matrix a, b, d;
    const void* a_at = nullptr;
    const void* b_at = nullptr;
    const void* c_at = nullptr;
    void* d_at = nullptr;
    const float* beta = nullptr;  // the factor of c in device memory; null: 1

    bool has_relu() const {
        return how.get(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT) ==
               CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
    }

    /// Returns max(value, 0), which is 0 for a NaN, and sets the bit of element `at` of the mask.
    double rectify(double value, std::size_t at) const {
        auto* mask = static_cast<unsigned char*>(
            how.get<void*>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, nullptr));
        const auto bit = static_cast<unsigned char>(1U << at % 8);
        mask[at / 8] =
            static_cast<unsigned char>(value > 0 ? mask[at / 8] | bit : mask[at / 8] & ~bit);
        return value > 0 ? value : 0;
    }

    void run() const {
        const bool ta = how.transposes(CUBLASLT_MATMUL_DESC_TRANSA);
        const bool tb = how.transposes(CUBLASLT_MATMUL_DESC_TRANSB);
        const auto epilogue = how.get(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
        const void* bias_at = epilogue == CUBLASLT_EPILOGUE_DEFAULT
                                  ? nullptr
                                  : how.get<void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr);
        const double factor = c_at == nullptr ? 0 : beta == nullptr ? 1 : *beta;
        const auto results = [&](const void* from, std::size_t count) {
            if (from == nullptr) return Numbers(count);
            return hpcai::simt::read_numbers(d.dtype, from, count, false);
        };
        const Numbers bias = results(bias_at, static_cast<std::size_t>(d.rows));
        const Numbers added = results(c_at, d.extent());
        const Numbers left = hpcai::simt::read_numbers(a.dtype, a_at, a.extent(), how.tf32);
        const Numbers right = hpcai::simt::read_numbers(b.dtype, b_at, b.extent(), how.tf32);
        const std::int64_t inner = ta ? a.rows : a.columns;
        for (std::int64_t column = 0; column < d.columns; ++column) {
            for (std::int64_t row = 0; row < d.rows; ++row) {
                const std::size_t at = d.at(row, column, false);
                double sum = bias[static_cast<std::size_t>(row)] + factor * added[at];
                for (std::int64_t i = 0; i < inner; ++i) {
                    sum += left[a.at(row, i, ta)] * right[b.at(i, column, tb)];
                }
                if (has_relu()) sum = rectify(sum, at);
                hpcai::kernels::reference::put(d.dtype, d_at, static_cast<std::int64_t>(at), sum);
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
                              cublasLtMatrixLayout_t b, const void* beta, const void* c_at,
                              cublasLtMatrixLayout_t, void* d_at, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t*, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
    const auto* added = static_cast<const float*>(beta);
    const bool on_device =
        description(how).get(CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_HOST) ==
        CUBLASLT_POINTER_MODE_DEVICE;
    const bool plain =
        on_device || (*static_cast<const float*>(alpha) == 1 && (*added == 0 || *added == 1));
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
    const Product product{.how = description(how),
                          .a = matrix(a),
                          .b = matrix(b),
                          .d = matrix(d),
                          .a_at = a_at,
                          .b_at = b_at,
                          .c_at = on_device || *added == 1 ? c_at : nullptr,
                          .d_at = d_at,
                          .beta = on_device ? added : nullptr};
    hpcai::simt::enqueue(stream, [product, workspace] {
        std::memset(workspace, 0xee, kWorkspaceBytes);  // the previous content is lost
        product.run();
    });
    return CUBLAS_STATUS_SUCCESS;
}
