// SPDX-License-Identifier: Apache-2.0
#include "handles.hpp"

#include <fmt/core.h>

#include "context.hpp"

namespace hpcai::device::cuda {

Handles::Handles(cudaStream_t stream) {
    check(cudnnCreate(&cudnn_), "starting cuDNN");
    try {
        check(cudnnSetStream(cudnn_, stream), "giving cuDNN its stream");
        check(cublasLtCreate(&cublas_lt_), "starting cuBLASLt");
    } catch (...) {
        cudnnDestroy(cudnn_);
        throw;
    }
}

Handles::~Handles() {
    cublasLtDestroy(cublas_lt_);
    cudnnDestroy(cudnn_);
}

std::string Handles::cudnn_version() {
    const std::size_t version = cudnnGetVersion();
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string Handles::cublas_version() {
    const std::size_t version = cublasLtGetVersion();
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace hpcai::device::cuda
