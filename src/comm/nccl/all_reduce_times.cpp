// SPDX-License-Identifier: Apache-2.0
#include "all_reduce_times.hpp"

#include "cuda_status.hpp"

namespace hpcai::comm {

namespace {

constexpr const char* kTiming = "timing all-reduces";

}  // namespace

RecordedMark::RecordedMark() {
    check_cuda(cudaEventCreate(&event_), kTiming);
}

RecordedMark::~RecordedMark() {
    cudaEventDestroy(event_);
}

void RecordedMark::put(cudaStream_t stream) {
    // Without this flag the event would only order the recording's streams and have no time.
    check_cuda(cudaEventRecordWithFlags(event_, stream, cudaEventRecordExternal), kTiming);
}

double RecordedMark::seconds_since(const RecordedMark& start) const {
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, start.event_, event_), kTiming);
    return milliseconds * 1e-3;
}

std::optional<SumSeconds> AllReduceTimes::last_run() const {
    if (under_way_.empty()) return std::nullopt;
    return SumSeconds{total(exposed_), total(under_way_)};
}

void AllReduceTimes::begin(Intervals& intervals, cudaStream_t stream) {
    if (is_being_recorded(stream, kTiming)) intervals.emplace_back().begin.put(stream);
}

void AllReduceTimes::end(Intervals& intervals, cudaStream_t stream) {
    if (is_being_recorded(stream, kTiming)) intervals.back().end.put(stream);
}

double AllReduceTimes::total(const Intervals& intervals) {
    double seconds = 0;
    for (const Interval& one : intervals) seconds += one.end.seconds_since(one.begin);
    return seconds;
}

}  // namespace hpcai::comm
