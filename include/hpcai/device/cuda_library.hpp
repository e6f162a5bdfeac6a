// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <hpcai/device/device.hpp>

namespace hpcai::device {

struct CudaDeviceOptions {
    int index = 0;  // of the GPU, among those that this process may use
    /// The same work gives the same bits again: only plans that promise it, chosen by rule; none
    /// is timed, and `plan_cache` is left alone.
    bool deterministic = false;
    bool autotune = true;  // time the plans of convolutions that `plan_cache` does not know
    /// A file that keeps the fastest plans from run to run; one that cannot be read or written is
    /// named in description(). Empty: they are kept in memory.
    std::string plan_cache;
};

/// The CUDA engine, libhpcai_cuda.so: a library of its own, so that this program starts where
/// there is no CUDA. Once open it stays in the process until its end, and so may what it made.
class CudaLibrary {
public:
    /// Whether this machine has NVIDIA's driver.
    static bool has_driver();
    /// Opens the engine beside the program, in ../lib, or where the system finds libraries. Throws
    /// Error(usage) where there is no NVIDIA driver, no engine or one of another version.
    static std::shared_ptr<const CudaLibrary> open();

    /// GPUs that this process may use. Throws Error(usage) when the driver does not answer.
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
