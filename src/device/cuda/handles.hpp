// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

namespace hpcai::device::cuda {

/// The libraries that kernels come from, opened for the current device; cuDNN works on `stream`.
class Handles {
public:
    /// Throws Error(internal) when a library does not start.
    explicit Handles(cudaStream_t stream);
    ~Handles();
    Handles(const Handles&) = delete;
    Handles& operator=(const Handles&) = delete;

    cudnnHandle_t cudnn() const { return cudnn_; }
    cublasLtHandle_t cublas_lt() const { return cublas_lt_; }

    /// "9.19.0".
    static std::string cudnn_version();
    static std::string cublas_version();

private:
    cudnnHandle_t cudnn_ = nullptr;
    cublasLtHandle_t cublas_lt_ = nullptr;
};

}  // namespace hpcai::device::cuda
