// SPDX-License-Identifier: Apache-2.0
#include "cuda_status.hpp"

#include <hpcai/base/error.hpp>

namespace hpcai::comm {

void check_cuda(cudaError_t status, const char* what) {
    // Clear the error, which the next kernel launch would report again.
    if (status != cudaSuccess) cudaGetLastError();
    ensure(status == cudaSuccess, "{}: {} ({})", what, cudaGetErrorString(status),
           cudaGetErrorName(status));
}

bool is_done(cudaError_t status, const char* what) {
    if (status != cudaErrorNotReady) check_cuda(status, what);
    if (status == cudaErrorNotReady) cudaGetLastError();  // clears it as check_cuda does
    return status == cudaSuccess;
}

bool is_being_recorded(cudaStream_t stream, const char* what) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check_cuda(cudaStreamIsCapturing(stream, &status), what);
    return status == cudaStreamCaptureStatusActive;
}

}  // namespace hpcai::comm
