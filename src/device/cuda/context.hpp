// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <hpcai/device/device.hpp>
#include <hpcai/device/operation_kernel.hpp>

/// The engine for NVIDIA GPUs. Images are stored channels last, (N, H, W, C), and filters as (K, R,
/// S, C): K filters of R rows and S columns. If C is 3, a fourth channel of zeros is stored.
namespace hpcai::device::cuda {

using tensor::DType;
using tensor::Shape;

class PlanCache;

/// The resources that all CUDA kernels of a device share. The device owns this object and the
/// handles, and has set cuDNN's stream to `stream`. Without a device (`cudnn` null), kernels can be
/// built for the GPU that `properties` describes, but cannot run.
struct Context {
    cudnnHandle_t cudnn = nullptr;
    cublasLtHandle_t cublas_lt = nullptr;
    cudaStream_t stream = nullptr;
    int sm = 90;                 // 10 x major + minor compute capability
    std::string properties;      // cuDNN's device properties as JSON, used without a device only
    PlanCache* plans = nullptr;  // the fastest known plans; not null
    bool autotune = true;        // time the problems (see PlanCache) that `plans` lacks
    bool deterministic = false;  // only plans with bitwise repeatable results
    Tuning* tuning = nullptr;    // updated when kernels are timed; not null with a device

    bool has_device() const { return cudnn != nullptr; }
};

/// The number of channels of an image in memory, with padding channels, which are zeros.
constexpr std::int64_t stored_channels(std::int64_t channels) {
    return channels == 3 ? 4 : channels;
}

/// Throw Error(internal) with `what` and the message of the library unless `status` is success.
void check(cudaError_t status, const char* what);
void check(cudnnStatus_t status, const char* what);
void check(cublasStatus_t status, const char* what);

/// Waits for the device; if it is unusable, rethrows the current exception. For catch blocks only.
void rethrow_fault();

/// Builds the kernel of a BatchNorm with `frozen`; called by build().
KernelPtr build_frozen_norm(const ops::BatchNorm&, const KernelOptions&, const Context&);

/// Throws Error(internal) for an Optimizer::exchange, buffers of different lengths, and ranges that
/// are out of order or outside the buffers, or whose `begin` is not a multiple of 8.
std::unique_ptr<Update> build_update(const Optimizer& optimizer, const OptimizerTensors& tensors,
                                     const Context& context, Device& device);

/// Owns a handle. The destructors of this and the following classes ignore errors, because a
/// failure of earlier work is reported where the host waits for that work.
template <typename T, auto kDestroy>
class OwnedHandle {
public:
    OwnedHandle() = default;
    ~OwnedHandle() {
        if (value_ != nullptr) kDestroy(value_);
    }
    OwnedHandle(const OwnedHandle&) = delete;
    OwnedHandle& operator=(const OwnedHandle&) = delete;

    T* out() { return &value_; }
    operator T() const { return value_; }

private:
    T value_ = nullptr;
};

/// A stream that does not synchronize with the default stream.
class OwnedStream {
public:
    OwnedStream() {
        check(cudaStreamCreateWithFlags(stream_.out(), cudaStreamNonBlocking), "creating a stream");
    }
    ~OwnedStream() { cudaStreamSynchronize(stream_); }
    operator cudaStream_t() const { return stream_; }

private:
    OwnedHandle<cudaStream_t, cudaStreamDestroy> stream_;
};

/// A point in a stream. Waiting for an event that was never recorded returns at once.
class OwnedEvent {
public:
    /// With cudaEventBlockingSync, wait() does not keep a core busy.
    explicit OwnedEvent(unsigned flags = 0) {
        check(cudaEventCreateWithFlags(event_.out(), cudaEventDisableTiming | flags),
              "creating an event");
    }

    void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "marking work"); }
    void wait() const { check(cudaEventSynchronize(event_), "waiting for the device"); }
    /// Makes later work on `stream` wait for the event; the host does not wait.
    void block(cudaStream_t stream) const {
        check(cudaStreamWaitEvent(stream, event_, 0), "ordering streams");
    }

private:
    OwnedHandle<cudaEvent_t, cudaEventDestroy> event_;
};

/// A point in a stream with its time. On a stream that is being captured it belongs to the CUDA
/// graph and has its time in the last launch of the graph.
class TimedEvent {
public:
    TimedEvent() { check(cudaEventCreate(event_.out()), "creating an event"); }

    void record(cudaStream_t stream) {
        cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        check(cudaStreamIsCapturing(stream, &status), "timing work");
        // In a capture, a default event would only order streams and have no time.
        const unsigned flags = status == cudaStreamCaptureStatusActive ? cudaEventRecordExternal
                                                                       : cudaEventRecordDefault;
        check(cudaEventRecordWithFlags(event_, stream, flags), "timing work");
    }
    /// The seconds from `start` to this event. Waits for this event.
    double seconds_since(const TimedEvent& start) const {
        check(cudaEventSynchronize(event_), "timing work");
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "timing work");
        return milliseconds * 1e-3;
    }

private:
    OwnedHandle<cudaEvent_t, cudaEventDestroy> event_;
};

template <cudaError_t (*kFree)(void*)>
struct FreeWith {
    void operator()(void* data) const { kFree(data); }
};

/// Pinned host memory, which a device reads and writes directly.
class PinnedBytes {
public:
    PinnedBytes() = default;
    /// Throws Error(internal) when the host has too little memory.
    explicit PinnedBytes(std::size_t bytes);

    std::byte* data() const { return static_cast<std::byte*>(data_.get()); }
    std::size_t bytes() const { return bytes_; }

private:
    std::unique_ptr<void, FreeWith<cudaFreeHost>> data_;
    std::size_t bytes_ = 0;
};

/// Uninitialized device memory, 256-byte aligned.
class DeviceBytes {
public:
    DeviceBytes() = default;
    /// Throws Error(internal) when the device has too little memory.
    explicit DeviceBytes(std::size_t bytes);

    void* data() const { return data_.get(); }
    std::size_t bytes() const { return bytes_; }

private:
    std::unique_ptr<void, FreeWith<cudaFree>> data_;
    std::size_t bytes_ = 0;
};

}  // namespace hpcai::device::cuda
