// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "context.hpp"

/// Owners of CUDA resources. Destructors ignore errors, because a failure of earlier work is
/// reported where the host waits for that work.
namespace hpcai::device::cuda {

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
    OwnedEvent() {
        check(cudaEventCreateWithFlags(event_.out(), cudaEventDisableTiming), "creating an event");
    }

    void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "marking work"); }
    /// Blocks the host until the event is complete.
    void wait() const { check(cudaEventSynchronize(event_), "waiting for the device"); }
    /// Makes later work on `stream` wait for the event.
    void block(cudaStream_t stream) const {
        check(cudaStreamWaitEvent(stream, event_, 0), "ordering streams");
    }

private:
    OwnedHandle<cudaEvent_t, cudaEventDestroy> event_;
};

/// A point in a stream with its time. On a stream that is being captured it belongs to the CUDA
/// graph and has the time of the graph's last launch.
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
