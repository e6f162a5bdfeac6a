// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <hpcai/device/device.hpp>

namespace hpcai::device {

struct CudaDeviceOptions {
    int index = 0;  // of the GPU among those that this process can use
    /// Bitwise repeatable results: a fixed rule selects one of the convolution plans that guarantee
    /// them, without timing and without `plan_cache`.
    bool deterministic = false;
    bool autotune = true;  // time plans for convolutions without an entry in `plan_cache`
    /// A file that keeps the fastest plans between runs. If it cannot be read or written,
    /// description() has a warning. Empty: plans are kept in memory only.
    std::string plan_cache;
};

/// The CUDA engine, libhpcai_cuda.so: a separate library, so that this program starts without CUDA.
/// The library is never unloaded, so its objects may live until the process ends.
class CudaLibrary {
public:
    /// Whether this machine has an NVIDIA driver.
    static bool has_driver();
    /// Opens the engine next to the program, in ../lib, or in the library path of the system.
    /// Throws Error(usage) if there is no NVIDIA driver, no engine or an engine of another version.
    static std::shared_ptr<const CudaLibrary> open();

    /// The number of usable GPUs. Throws Error(usage) if the driver does not respond.
    int device_count() const;
    /// Throws Error(usage) when there is no such GPU.
    std::unique_ptr<Device> make_device(const CudaDeviceOptions& options) const;
    /// The address of another entry point. Throws Error(internal) when there is none.
    void* symbol(const char* name) const;

private:
    CudaLibrary(void* handle, const std::string& path);

    void* handle_;  // never closed
};

}  // namespace hpcai::device
