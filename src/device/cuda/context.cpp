// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

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

namespace {

[[noreturn]] void reject_shards() {
    throw Error(ExitCode::internal, "the CUDA engine does not support shards of networks");
}

}  // namespace

KernelPtr build(const ops::AllGather&, const KernelOptions&, const Context&) {
    reject_shards();
}

KernelPtr build(const ops::ReduceScatter&, const KernelOptions&, const Context&) {
    reject_shards();
}

}  // namespace hpcai::device::cuda
