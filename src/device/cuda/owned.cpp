// SPDX-License-Identifier: Apache-2.0
#include "owned.hpp"

#include <algorithm>

#include <hpcai/base/error.hpp>

namespace hpcai::device::cuda {

PinnedBytes::PinnedBytes(std::size_t bytes) : bytes_(bytes) {
    const cudaError_t status = cudaMallocHost(&data_, std::max<std::size_t>(bytes, 1));
    if (status == cudaSuccess) return;
    cudaGetLastError();  // or the next launch reports it
    ensure(false, "no pinned host memory for {} bytes: {}", bytes, cudaGetErrorString(status));
}

DeviceBytes::DeviceBytes(std::size_t bytes) : bytes_(bytes) {
    const cudaError_t status = cudaMalloc(&data_, std::max<std::size_t>(bytes, 1));
    if (status == cudaSuccess) return;
    cudaGetLastError();  // or the next launch reports it
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    ensure(false, "no device memory for {} bytes, of {} are {} free: {}", bytes, total, free,
           cudaGetErrorString(status));
}

}  // namespace hpcai::device::cuda
