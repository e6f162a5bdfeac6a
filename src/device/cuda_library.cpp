// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <system_error>

#include <dlfcn.h>

#include <hpcai/base/error.hpp>
#include <hpcai/device/cuda_library.hpp>

namespace hpcai::device {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDriver = "libcuda.so.1";
constexpr const char* kEngine = "libhpcai_cuda.so";

/// The flag RTLD_NODELETE is needed, because devices, kernels and exceptions execute the engine's
/// code until they are destroyed.
void* open_library(const std::string& name, const char* failure) {
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == nullptr) throw Error(ExitCode::usage, fmt::format("{}: {}", failure, dlerror()));
    return handle;
}

/// Returns the path of the engine next to this program or in ../lib, else its name for dlopen().
std::string engine_path() {
    std::error_code ignored;
    const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    for (const fs::path& path : {folder / kEngine, folder / ".." / "lib" / kEngine}) {
        if (fs::exists(path, ignored)) return path.lexically_normal().string();
    }
    return kEngine;
}

}  // namespace

bool CudaLibrary::has_driver() {
    return dlopen(kDriver, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) != nullptr;
}

std::shared_ptr<const CudaLibrary> CudaLibrary::open() {
    open_library(kDriver, "no GPU can be used, because this machine has no NVIDIA driver");
    const std::string path = engine_path();
    void* handle = open_library(path, "the CUDA engine cannot be opened");
    return std::shared_ptr<const CudaLibrary>(new CudaLibrary(handle, path));
}

CudaLibrary::CudaLibrary(void* handle, const std::string& path) : handle_(handle) {
    const auto version = reinterpret_cast<const char* (*)()>(symbol("hpcai_cuda_version"));
    require(std::string_view(version()) == HPCAI500_VERSION, ExitCode::usage,
            "{} has version {}, but this program has version {}; build both together", path,
            version(), HPCAI500_VERSION);
}

// Exceptions of the engine pass through these calls. This works because both sides are built by one
// compiler from one source, share libstdc++.so, and g++ identifies a type by its name, not its
// address.

int CudaLibrary::device_count() const {
    return reinterpret_cast<int (*)()>(symbol("hpcai_cuda_device_count"))();
}

std::unique_ptr<Device> CudaLibrary::make_device(const CudaDeviceOptions& options) const {
    using Make = Device* (*)(const CudaDeviceOptions&);
    return std::unique_ptr<Device>(
        reinterpret_cast<Make>(symbol("hpcai_make_cuda_device"))(options));
}

void* CudaLibrary::symbol(const char* name) const {
    void* address = dlsym(handle_, name);
    ensure(address != nullptr, "the CUDA engine has no function {}", name);
    return address;
}

}  // namespace hpcai::device
