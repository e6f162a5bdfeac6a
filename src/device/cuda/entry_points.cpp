// SPDX-License-Identifier: Apache-2.0
// The functions that CudaLibrary looks up by name.
#include "cuda_device.hpp"

extern "C" {

const char* hpcai_cuda_version() {
    return HPCAI500_VERSION;
}

int hpcai_cuda_device_count() {
    return hpcai::device::cuda::device_count();
}

/// The caller owns the device.
hpcai::device::Device* hpcai_make_cuda_device(const hpcai::device::CudaDeviceOptions& options) {
    return hpcai::device::cuda::make_cuda_device(options).release();
}

/// The cudaStream_t of a device that hpcai_make_cuda_device() made.
void* hpcai_cuda_stream(hpcai::device::Device& device) {
    return hpcai::device::cuda::context_of(device).stream;
}

}  // extern "C"
