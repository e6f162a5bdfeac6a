// SPDX-License-Identifier: Apache-2.0
#pragma once

struct CUstream_st;

namespace hpcai::kernels {

/// The type cudaStream_t, for headers that do not include CUDA headers.
using Stream = CUstream_st*;

/// Throws Error(internal) with `what` and `detail`. For .cu files, because nvcc 13.0 does not
/// compile the formatting library that base/error.hpp includes.
[[noreturn]] void fail(const char* what, const char* detail = "");

}  // namespace hpcai::kernels
