// SPDX-License-Identifier: Apache-2.0
#include "all_reduce_times.hpp"

#include <hpcai/base/error.hpp>

namespace hpcai::comm {

namespace {

void check(cudaError_t status) {
    ensure(status == cudaSuccess, "timing sums: {} ({})", cudaGetErrorString(status),
           cudaGetErrorName(status));
}

bool is_recorded(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    check(cudaStreamIsCapturing(stream, &status));
    return status == cudaStreamCaptureStatusActive;
}

}  // namespace

RecordedMark::RecordedMark() {
    check(cudaEventCreate(&event_));
}

RecordedMark::~RecordedMark() {
    cudaEventDestroy(event_);
}

void RecordedMark::put(cudaStream_t stream) {
    // External: else it would order the recording's streams and have no time.
    check(cudaEventRecordWithFlags(event_, stream, cudaEventRecordExternal));
}

double RecordedMark::seconds_since(const RecordedMark& start) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start.event_, event_));
    return milliseconds * 1e-3;
}

std::optional<SumSeconds> AllReduceTimes::last_run() const {
    if (under_way_.empty()) return std::nullopt;
    return SumSeconds{total(exposed_), total(under_way_)};
}

void AllReduceTimes::begin(Intervals& intervals, cudaStream_t stream) {
    if (is_recorded(stream)) intervals.emplace_back().begin.put(stream);
}

void AllReduceTimes::end(Intervals& intervals, cudaStream_t stream) {
    if (is_recorded(stream)) intervals.back().end.put(stream);
}

double AllReduceTimes::total(const Intervals& intervals) {
    double seconds = 0;
    for (const Interval& one : intervals) seconds += one.end.seconds_since(one.begin);
    return seconds;
}

}  // namespace hpcai::comm
