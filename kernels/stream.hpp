// SPDX-License-Identifier: Apache-2.0
#pragma once

struct CUstream_st;

namespace hpcai::kernels {

/// cudaStream_t, for headers that do not include those of CUDA.
using Stream = CUstream_st*;

}  // namespace hpcai::kernels
