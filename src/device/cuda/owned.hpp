// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

#include "context.hpp"

/// What CUDA gives and wants back, each in the one class that owns it. What it says when it gets
/// something back is left unheard: a failure of earlier work shows where that is waited for.
namespace hpcai::device::cuda {

/// Work in order, which waits for no other stream unless told to.
class OwnedStream {
public:
    OwnedStream() {
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
    }
    ~OwnedStream() {
        cudaStreamSynchronize(stream_);
        cudaStreamDestroy(stream_);
    }
    OwnedStream(const OwnedStream&) = delete;
    OwnedStream& operator=(const OwnedStream&) = delete;
    operator cudaStream_t() const { return stream_; }

private:
    cudaStream_t stream_ = nullptr;
};

/// A point in a stream. Before it is first recorded nobody waits for it.
class OwnedEvent {
public:
    OwnedEvent() {
        check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "making an event");
    }
    ~OwnedEvent() { cudaEventDestroy(event_); }
    OwnedEvent(const OwnedEvent&) = delete;
    OwnedEvent& operator=(const OwnedEvent&) = delete;

    void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "marking work"); }
    /// The host waits.
    void wait() const { check(cudaEventSynchronize(event_), "waiting for the device"); }
    /// What is enqueued on `stream` from now on waits.
    void hold_up(cudaStream_t stream) const {
        check(cudaStreamWaitEvent(stream, event_, 0), "ordering streams");
    }

private:
    cudaEvent_t event_ = nullptr;
};

/// A point in a stream, with its time; on a stream that is being recorded, a point of the
/// recording, with the time of the run that was last.
class TimedEvent {
public:
    TimedEvent() { check(cudaEventCreate(&event_), "making an event"); }
    ~TimedEvent() { cudaEventDestroy(event_); }
    TimedEvent(const TimedEvent&) = delete;
    TimedEvent& operator=(const TimedEvent&) = delete;

    void record(cudaStream_t stream) {
        cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        check(cudaStreamIsCapturing(stream, &status), "timing work");
        // Else it would order the recording's streams and have no time.
        const unsigned flags = status == cudaStreamCaptureStatusActive ? cudaEventRecordExternal
                                                                       : cudaEventRecordDefault;
        check(cudaEventRecordWithFlags(event_, stream, flags), "timing work");
    }
    /// Waits for it.
    double seconds_since(const TimedEvent& start) const {
        check(cudaEventSynchronize(event_), "timing work");
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "timing work");
        return milliseconds * 1e-3;
    }

private:
    cudaEvent_t event_ = nullptr;
};

/// Host memory that a device reads and writes by itself.
class PinnedBytes {
public:
    PinnedBytes() = default;
    /// Throws Error(internal) when there is none left.
    explicit PinnedBytes(std::size_t bytes);
    ~PinnedBytes() { cudaFreeHost(data_); }
    PinnedBytes(PinnedBytes&& other) noexcept { swap(other); }
    PinnedBytes& operator=(PinnedBytes&& other) noexcept {
        swap(other);
        return *this;
    }

    std::byte* data() const { return static_cast<std::byte*>(data_); }
    std::size_t bytes() const { return bytes_; }

private:
    void swap(PinnedBytes& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
    }
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

/// Device memory with anything in it, 256-byte aligned.
class DeviceBytes {
public:
    DeviceBytes() = default;
    /// Throws Error(internal) with what was asked for and what is free.
    explicit DeviceBytes(std::size_t bytes);
    ~DeviceBytes() { cudaFree(data_); }
    DeviceBytes(DeviceBytes&& other) noexcept { swap(other); }
    DeviceBytes& operator=(DeviceBytes&& other) noexcept {
        swap(other);
        return *this;
    }

    void* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }

private:
    void swap(DeviceBytes& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
    }
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace hpcai::device::cuda
