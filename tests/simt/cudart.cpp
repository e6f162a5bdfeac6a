// SPDX-License-Identifier: Apache-2.0
// The parts of CUDA's runtime that the engine uses, on host memory: devices, memory and errors.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtime.hpp"

namespace {

using namespace hpcai::simt;

void demand_device(const void* at, std::size_t bytes, const char* what) {
    demand(runtime().memory.holds(at, bytes), cudaErrorInvalidValue,
           std::string(what) + " is not within a block of device memory");
}

void demand_host(const void* at, const char* what) {
    demand(!runtime().memory.is_address(at), cudaErrorInvalidValue,
           std::string(what) + " is device memory, not the host's");
}

/// Rows of bytes; usually there is one row.
struct Copy {
    void* to = nullptr;
    std::size_t to_pitch = 0;
    const void* from = nullptr;
    std::size_t from_pitch = 0;
    std::size_t width = 0;
    std::size_t height = 1;

    std::size_t extent(std::size_t pitch) const { return (height - 1) * pitch + width; }
    void run() const {
        for (std::size_t row = 0; row < height; ++row) {
            std::memcpy(static_cast<std::byte*>(to) + row * to_pitch,
                        static_cast<const std::byte*>(from) + row * from_pitch, width);
        }
    }
};

/// The check is repeated when the copy runs, because blocks may be freed before that.
void check_places(const Copy& copy, bool to_device, bool from_device) {
    if (to_device) {
        demand_device(copy.to, copy.extent(copy.to_pitch), "a copy's destination");
    } else {
        demand_host(copy.to, "a copy's destination");
    }
    if (from_device) {
        demand_device(copy.from, copy.extent(copy.from_pitch), "a copy's source");
    } else {
        demand_host(copy.from, "a copy's source");
    }
}

void enqueue_copy(Copy copy, cudaMemcpyKind kind, cudaStream_t stream) {
    if (copy.width == 0 || copy.height == 0) return;
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind == cudaMemcpyDefault) {
        to_device = runtime().memory.is_address(copy.to);
        from_device = runtime().memory.is_address(copy.from);
    }
    check_places(copy, to_device, from_device);
    const bool captured = stream != nullptr && stream->graph != nullptr;
    const auto pinned = [](const void* at) { return runtime().pinned.holds(at, 1); };
    std::vector<std::byte> staged;
    if (!from_device && !pinned(copy.from) &&
        !captured) {  // the source must be read before the call returns
        const auto* first = static_cast<const std::byte*>(copy.from);
        staged.assign(first, first + copy.extent(copy.from_pitch));
    }
    const bool from_pinned = !from_device && pinned(copy.from);
    runtime().enqueue(stream, [=, kept = std::move(staged)]() mutable {
        if (!kept.empty()) copy.from = kept.data();
        check_places(copy, to_device, from_device);
        demand(!from_pinned || pinned(copy.from), cudaErrorInvalidValue,
               "pinned memory was freed before it was copied");
        copy.run();
    });
    if (!to_device && !pinned(copy.to) && stream != nullptr && !captured) {
        runtime().carry_out([&] { stream->queue->finish(); });
    }
}

void enqueue_set(void* at, int value, std::size_t bytes, cudaStream_t stream) {
    if (bytes == 0) return;
    demand_device(at, bytes, "what is set");
    runtime().enqueue(stream, [=] {
        demand_device(at, bytes, "what is set");
        std::memset(at, value, bytes);
    });
}

struct NamedError {
    cudaError_t code;
    const char* name;
    const char* words;
};
constexpr NamedError kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"}};

const NamedError& named(cudaError_t code) {
    static constexpr NamedError kOther{cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};
    const auto* found = std::find_if(std::begin(kErrors), std::end(kErrors),
                                     [&](const auto& error) { return error.code == code; });
    return found == std::end(kErrors) ? kOther : *found;
}

/// Returns the properties of an H200. If ranks do not share it, each rank of Open MPI has a
/// separate one.
cudaDeviceProp properties_of_h200() {
    cudaDeviceProp properties{};
    std::strcpy(properties.name, "NVIDIA H200, stood in for by the CPU");
    properties.major = 9;
    properties.minor = 0;
    properties.multiProcessorCount = 132;
    properties.warpSize = 32;
    properties.maxThreadsPerBlock = 1024;
    properties.maxThreadsPerMultiProcessor = 2048;
    properties.l2CacheSize = 60 << 20;
    properties.memoryBusWidth = 6144;
    properties.totalGlobalMem = runtime().memory.capacity();
    const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
    if (std::getenv("HPCAI500_STAND_IN_PER_RANK") != nullptr && rank != nullptr) {
        properties.uuid.bytes[0] = static_cast<char>(std::atoi(rank) + 1);
    }
    return properties;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
    return call([&] { *count = 1; });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    return call([&] {
        demand(device == 0, cudaErrorInvalidDevice, "there is one device");
        *properties = properties_of_h200();
    });
}

cudaError_t cudaSetDevice(int device) {
    return call([&] { demand(device == 0, cudaErrorInvalidDevice, "there is one device"); });
}

cudaError_t cudaGetDevice(int* device) {
    return call([&] { *device = 0; });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int) {
    return call([&] {
        demand(length > 12, cudaErrorInvalidValue, "no room for an address");
        std::strcpy(id, "0000:00:00.0");
    });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
    return call([&] { *version = CUDART_VERSION; });
}

cudaError_t cudaDriverGetVersion(int* version) {
    return call([&] { *version = CUDART_VERSION; });
}

cudaError_t cudaGetLastError() {
    Runtime& all = runtime();
    return all.failure.empty() ? std::exchange(all.last, cudaSuccess) : cudaErrorLaunchFailure;
}

cudaError_t cudaPeekAtLastError() {
    return runtime().failure.empty() ? runtime().last : cudaErrorLaunchFailure;
}

const char* cudaGetErrorName(cudaError_t code) {
    return named(code).name;
}

const char* cudaGetErrorString(cudaError_t code) {
    const Runtime& all = runtime();
    return code == all.last && !all.last_message.empty() ? all.last_message.c_str()
                                                         : named(code).words;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
    return call([&] {
        *total = runtime().memory.capacity();
        *free = *total - runtime().memory.allocated();
    });
}

cudaError_t cudaMalloc(void** block, std::size_t bytes) {
    return call([&] {
        runtime().refuse_during_capture("cudaMalloc");
        *block = bytes == 0 ? nullptr : runtime().memory.allocate(bytes);
        demand(bytes == 0 || *block != nullptr, cudaErrorMemoryAllocation, "out of memory");
    });
}

cudaError_t cudaFree(void* block) {
    return call_after_all([&] {
        if (block == nullptr) return;
        runtime().refuse_during_capture("cudaFree");
        runtime().finish_all();
        demand(runtime().memory.free(block), cudaErrorInvalidValue,
               "cudaFree of what is no block of device memory");
    });
}

cudaError_t cudaHostAlloc(void** block, std::size_t bytes, unsigned) {
    return call([&] {
        runtime().refuse_during_capture("allocation of pinned memory");
        *block = runtime().pinned.allocate(bytes);
    });
}

cudaError_t cudaMallocHost(void** block, std::size_t bytes) {
    return cudaHostAlloc(block, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* block) {
    return call_after_all([&] {
        if (block == nullptr) return;
        runtime().refuse_during_capture("cudaFreeHost");
        demand(runtime().pinned.free(block), cudaErrorInvalidValue,
               "cudaFreeHost of what is no pinned memory");
    });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    return call([&] { enqueue_copy({to, bytes, from, bytes, bytes}, kind, stream); });
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
    return call([&] {
        demand(width <= to_pitch && width <= from_pitch, cudaErrorInvalidPitchValue,
               "rows overlap");
        enqueue_copy({to, to_pitch, from, from_pitch, width, height}, kind, stream);
    });
}

cudaError_t cudaMemsetAsync(void* at, int value, std::size_t bytes, cudaStream_t stream) {
    return call([&] { enqueue_set(at, value, bytes, stream); });
}

cudaError_t cudaMemset(void* at, int value, std::size_t bytes) {
    return cudaMemsetAsync(at, value, bytes, nullptr);
}
