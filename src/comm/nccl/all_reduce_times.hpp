// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include <cuda_runtime_api.h>

#include <hpcai/comm/gradient_reducer.hpp>

namespace hpcai::comm {

/// Throws Error(internal) with `what` and CUDA's error unless `status` is cudaSuccess.
inline void check_cuda(cudaError_t status, const char* what) {
    // Clear the error, which the next kernel launch would report again.
    if (status != cudaSuccess) cudaGetLastError();
    ensure(status == cudaSuccess, "{}: {} ({})", what, cudaGetErrorString(status),
           cudaGetErrorName(status));
}

/// Returns whether the work is complete, by the `status` of a query. Throws as check_cuda.
inline bool is_done(cudaError_t status, const char* what) {
    if (status != cudaErrorNotReady) check_cuda(status, what);
    if (status == cudaErrorNotReady) cudaGetLastError();  // clears it as check_cuda does
    return status == cudaSuccess;
}

/// Returns whether `stream` is being captured as a CUDA graph. Throws as check_cuda.
inline bool is_being_recorded(cudaStream_t stream, const char* what) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check_cuda(cudaStreamIsCapturing(stream, &status), what);
    return status == cudaStreamCaptureStatusActive;
}

inline constexpr const char* kTimingAllReduces = "timing all-reduces";

/// A CUDA event in a CUDA graph, with its time in the last launch of the graph.
class RecordedEvent {
public:
    RecordedEvent() { check_cuda(cudaEventCreate(&event_), kTimingAllReduces); }
    ~RecordedEvent() { cudaEventDestroy(event_); }
    RecordedEvent(const RecordedEvent&) = delete;
    RecordedEvent& operator=(const RecordedEvent&) = delete;

    /// Call it on a stream that is being captured.
    void record(cudaStream_t stream) {
        // Without this flag, the event would only order the captured streams and have no time.
        check_cuda(cudaEventRecordWithFlags(event_, stream, cudaEventRecordExternal),
                   kTimingAllReduces);
    }
    /// Call it after the graph has run.
    double seconds_since(const RecordedEvent& start) const {
        float milliseconds = 0;
        check_cuda(cudaEventElapsedTime(&milliseconds, start.event_, event_), kTimingAllReduces);
        return milliseconds * 1e-3;
    }

private:
    cudaEvent_t event_ = nullptr;
};

/// Times the all-reduces of one CUDA graph on the device. Calls on a stream that is not being
/// captured have no effect.
class AllReduceTimes {
public:
    /// Call both around each all-reduce, on its stream, after the wait for its inputs.
    void begin_all_reduce(cudaStream_t stream) { begin(in_flight_, stream); }
    void end_all_reduce(cudaStream_t stream) { end(in_flight_, stream); }
    /// Call both around each wait for all-reduces, on the waiting stream.
    void begin_wait(cudaStream_t stream) { begin(exposed_, stream); }
    void end_wait(cudaStream_t stream) { end(exposed_, stream); }

    /// Returns the times of the last run, which must be complete; empty without all-reduces.
    std::optional<AllReduceSeconds> last_run() const {
        if (in_flight_.empty()) return std::nullopt;
        return AllReduceSeconds{total(exposed_), total(in_flight_)};
    }

private:
    struct Interval {
        RecordedEvent begin, end;
    };
    using Intervals = std::deque<Interval>;

    static void begin(Intervals& intervals, cudaStream_t stream) {
        if (is_being_recorded(stream, kTimingAllReduces))
            intervals.emplace_back().begin.record(stream);
    }
    static void end(Intervals& intervals, cudaStream_t stream) {
        if (is_being_recorded(stream, kTimingAllReduces)) intervals.back().end.record(stream);
    }
    static double total(const Intervals& intervals) {
        double seconds = 0;
        for (const Interval& each : intervals) seconds += each.end.seconds_since(each.begin);
        return seconds;
    }

    Intervals in_flight_, exposed_;
};

}  // namespace hpcai::comm
