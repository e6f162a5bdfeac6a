// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <algorithm>

#include <hpcai/base/error.hpp>

namespace hpcai::device::cuda {

void check(cudaError_t status, const char* what) {
    if (status != cudaSuccess) cudaGetLastError();  // clears the error
    ensure(status == cudaSuccess, "{}: {} ({})", what, cudaGetErrorString(status),
           cudaGetErrorName(status));
}

void check(cudnnStatus_t status, const char* what) {
    ensure(status == CUDNN_STATUS_SUCCESS, "{}: cuDNN reports {}", what,
           cudnnGetErrorString(status));
}

void check(cublasStatus_t status, const char* what) {
    ensure(status == CUBLAS_STATUS_SUCCESS, "{}: cuBLASLt reports {}", what,
           cublasLtGetStatusString(status));
}

void rethrow_fault() {
    if (cudaDeviceSynchronize() != cudaSuccess) throw;
}

KernelPtr build(const ops::AllGather&, const KernelOptions&, const Context&) {
    throw Error(ExitCode::internal, "the CUDA engine does not support shards of networks");
}

KernelPtr build(const ops::ReduceScatter&, const KernelOptions& options, const Context& context) {
    return build(ops::AllGather{}, options, context);
}

PinnedBytes::PinnedBytes(std::size_t bytes) : bytes_(bytes) {
    void* data = nullptr;
    const cudaError_t status = cudaMallocHost(&data, std::max<std::size_t>(bytes, 1));
    data_.reset(data);
    if (status == cudaSuccess) return;
    cudaGetLastError();  // clears the error, which the next launch would report
    require(false, ExitCode::internal, "cannot allocate {} MiB of pinned memory: {}; {}",
            bytes >> 20, cudaGetErrorString(status), kMemoryRemedy);
}

DeviceBytes::DeviceBytes(std::size_t bytes) : bytes_(bytes) {
    void* data = nullptr;
    const cudaError_t status = cudaMalloc(&data, std::max<std::size_t>(bytes, 1));
    data_.reset(data);
    if (status == cudaSuccess) return;
    cudaGetLastError();  // clears the error, which the next launch would report
    std::size_t free_bytes = 0, total_bytes = 0;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    require(false, ExitCode::internal,
            "cannot allocate {} MiB of GPU memory ({} of {} MiB are free): {}; {}", bytes >> 20,
            free_bytes >> 20, total_bytes >> 20, cudaGetErrorString(status), kMemoryRemedy);
}

}  // namespace hpcai::device::cuda
