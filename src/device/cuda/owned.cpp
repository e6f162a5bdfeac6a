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
    require(false, ExitCode::internal, "cannot allocate {} MiB of pinned memory: {}; {}",
            bytes >> 20, cudaGetErrorString(status), kMemoryRemedy);
}

DeviceBytes::DeviceBytes(std::size_t bytes) : bytes_(bytes) {
    void* data = nullptr;
    const cudaError_t status = cudaMalloc(&data, std::max<std::size_t>(bytes, 1));
    data_.reset(data);
    if (status == cudaSuccess) return;
    cudaGetLastError();  // clears the error, which the next launch would report
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    require(false, ExitCode::internal,
            "cannot allocate {} MiB of GPU memory ({} of {} MiB are free): {}; {}", bytes >> 20,
            free >> 20, total >> 20, cudaGetErrorString(status), kMemoryRemedy);
}

}  // namespace hpcai::device::cuda
