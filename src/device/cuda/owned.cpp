// SPDX-License-Identifier: Apache-2.0
#include "owned.hpp"

#include <algorithm>

#include <hpcai/base/error.hpp>

namespace hpcai::device::cuda {

PinnedBytes::PinnedBytes(std::size_t bytes) : bytes_(bytes) {
    void* data = nullptr;
    const cudaError_t status = cudaMallocHost(&data, std::max<std::size_t>(bytes, 1));
    data_.reset(data);
    if (status == cudaSuccess) return;
    cudaGetLastError();  // clears the error, which the next launch would report
    ensure(false, "cannot allocate {} bytes of pinned memory: {}", bytes,
           cudaGetErrorString(status));
}

DeviceBytes::DeviceBytes(std::size_t bytes) : bytes_(bytes) {
    void* data = nullptr;
    const cudaError_t status = cudaMalloc(&data, std::max<std::size_t>(bytes, 1));
    data_.reset(data);
    if (status == cudaSuccess) return;
    cudaGetLastError();  // clears the error, which the next launch would report
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    ensure(false, "cannot allocate {} bytes of device memory ({} of {} bytes are free): {}", bytes,
           free, total, cudaGetErrorString(status));
}

}  // namespace hpcai::device::cuda
