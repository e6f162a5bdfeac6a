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

/// The CUDA engine, libhpcai_cuda.so. It is a separate library, so that the program also starts on
/// machines without CUDA.
/// The library is never unloaded, so devices may live until the process ends.
class CudaLibrary {
public:
    /// Returns whether the NVIDIA driver is installed.
    static bool has_driver();
    /// Opens the engine that lies next to the program; otherwise that in ../lib, relative to the
    /// program; otherwise that in the system's library path. Throws Error(usage) if driver or
    /// engine is missing, or if engine and program have different versions.
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
