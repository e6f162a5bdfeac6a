// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/device/cuda_library.hpp>

#include "context.hpp"

namespace hpcai::device::cuda {

/// The number of GPUs that this process may use; 0 where the driver finds none. Throws Error(usage)
/// for other failures of the driver, for example if it is too old.
int device_count();

/// Throws Error(usage) when there is no such GPU or the kernels of this build do not run on it, and
/// Error(internal) when CUDA or a library fails otherwise.
std::unique_ptr<Device> make_cuda_device(const CudaDeviceOptions& options);

/// Captures as a CUDA graph the work that `enqueue` enqueues on `stream` and on other streams.
/// Those must first wait for an event of `stream`, and end with an event for which `stream` waits.
/// Throws what `enqueue` throws, and Error(internal) for work that cannot be captured; `stream`
/// remains usable in both cases.
std::unique_ptr<Recording> record_work(cudaStream_t stream, const std::function<void()>& enqueue);

/// The context of a device that make_cuda_device() made. Callers may enqueue work on its stream.
/// Throws Error(internal) for a device of another engine.
const Context& context_of(Device& device);

}  // namespace hpcai::device::cuda
