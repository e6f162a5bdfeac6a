// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include "failure.hpp"

namespace hpcai::kernels {

/// Where a kernel runs: `blocks_x` x `blocks_y` blocks of `threads`, after what `stream` holds.
struct Grid {
    unsigned blocks_x = 1;
    unsigned blocks_y = 1;
    unsigned threads = 1;
    cudaStream_t stream = nullptr;
};

/// Enqueues a kernel. Throws Error(internal) when the launch itself is refused.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), const Grid& grid, Arguments&&... arguments) {
    kernel<<<dim3(grid.blocks_x, grid.blocks_y), grid.threads, 0, grid.stream>>>(
        static_cast<Parameters>(arguments)...);
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess) fail("CUDA refuses a kernel:", cudaGetErrorString(status));
}

}  // namespace hpcai::kernels
