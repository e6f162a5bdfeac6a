// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <hpcai/base/error.hpp>

namespace hpcai::comm {

/// Throws Error(internal) with `what` and CUDA's error unless `status` is cudaSuccess.
inline void check_cuda(cudaError_t status, const char* what) {
    // Clear the error, which the next kernel launch would report again.
    if (status != cudaSuccess) cudaGetLastError();
    ensure(status == cudaSuccess, "{}: {} ({})", what, cudaGetErrorString(status),
           cudaGetErrorName(status));
}

/// Returns whether the work is complete, by the `status` of a query. Throws as check_cuda.
inline bool is_done(cudaError_t status, const char* what) {
    if (status != cudaErrorNotReady) check_cuda(status, what);
    if (status == cudaErrorNotReady) cudaGetLastError();  // clears it as check_cuda does
    return status == cudaSuccess;
}

/// Returns whether `stream` is being captured as a CUDA graph. Throws as check_cuda.
inline bool is_being_recorded(cudaStream_t stream, const char* what) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check_cuda(cudaStreamIsCapturing(stream, &status), what);
    return status == cudaStreamCaptureStatusActive;
}

}  // namespace hpcai::comm
