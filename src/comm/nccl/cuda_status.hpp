// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace hpcai::comm {

/// Throws Error(internal) with `what` and CUDA's error unless `status` is cudaSuccess.
void check_cuda(cudaError_t status, const char* what);

/// Returns whether the work is complete, by the `status` of a query. Throws as check_cuda.
bool is_done(cudaError_t status, const char* what);

/// Returns whether `stream` is being captured as a CUDA graph. Throws as check_cuda.
bool is_being_recorded(cudaStream_t stream, const char* what);

}  // namespace hpcai::comm
