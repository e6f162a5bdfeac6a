// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <cuda_runtime.h>

#include "stream.hpp"

namespace hpcai::kernels {

/// The launch configuration: `blocks_x` x `blocks_y` blocks of `threads`, on `stream`.
struct Grid {
    std::int64_t blocks_x = 1;
    std::int64_t blocks_y = 1;
    unsigned threads = 1;
    cudaStream_t stream = nullptr;
};

/// Throws Error(internal) with the name of the kernel if its launch or earlier work failed.
inline void check_launch(const void* kernel) {
    const cudaError_t status = cudaGetLastError();
    if (status == cudaSuccess) return;
    const char* name = nullptr;
    if (cudaFuncGetName(&name, kernel) != cudaSuccess || name == nullptr) name = "of unknown name";
    const auto what = std::string("CUDA rejects the kernel ") + name + ", or earlier work failed:";
    fail(what.c_str(), cudaGetErrorString(status));
}

/// Enqueues a kernel. Throws like check_launch().
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), const Grid& grid, Arguments&&... arguments) {
    const dim3 blocks(static_cast<unsigned>(grid.blocks_x), static_cast<unsigned>(grid.blocks_y));
    kernel<<<blocks, grid.threads, 0, grid.stream>>>(static_cast<Parameters>(arguments)...);
    check_launch(reinterpret_cast<const void*>(kernel));
}

}  // namespace hpcai::kernels
