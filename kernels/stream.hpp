// SPDX-License-Identifier: Apache-2.0
#pragma once

struct CUstream_st;

namespace hpcai::kernels {

/// What cudaStream_t is, for headers that do not include CUDA's.
using Stream = CUstream_st*;

}  // namespace hpcai::kernels
