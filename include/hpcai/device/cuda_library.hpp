// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/device/device.hpp>

namespace hpcai::device {

struct CudaDeviceOptions {
    int index = 0;  // of the GPU among those visible to this process
    /// Bitwise repeatable results: a fixed rule chooses among deterministic plans (cuDNN's
    /// implementations of a convolution), without timing and without `plan_cache`.
    bool deterministic = false;
    bool autotune = true;  // time the plans and fused operations that are not in `plan_cache`
    /// File that stores the fastest plans between runs. If it cannot be read or written,
    /// description() contains a warning. Empty: plans are kept in memory only.
    std::string plan_cache;
};

/// The CUDA engine, libhpcai_cuda.so: a separate library, so that hpcai500 runs without CUDA, too.
/// The library is never unloaded, so devices may live until the process ends.
class CudaLibrary {
public:
    /// Returns whether the NVIDIA driver is installed.
    static bool has_driver();
    /// Opens the first engine in the program's folder, its ../lib, or the system's library path.
    /// Throws Error(usage) if the driver or an engine of the program's version is missing.
    static std::shared_ptr<const CudaLibrary> open();

    /// The number of usable GPUs. Throws Error(usage) if the driver reports a failure.
    int device_count() const;
    /// Throws Error(usage) if the GPU does not exist or the engine is not built for it.
    std::unique_ptr<Device> make_device(const CudaDeviceOptions& options) const;
    /// Returns the address of entry point `name`. Throws Error(internal) if it does not exist.
    void* symbol(const char* name) const;

private:
    CudaLibrary(void* handle, const std::string& path);

    void* handle_;  // never closed
};

}  // namespace hpcai::device
