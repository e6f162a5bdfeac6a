// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>

#include <cuda_runtime_api.h>

#include <hpcai/comm/gradient_reducer.hpp>

namespace hpcai::comm {

/// A point in a recording, with its time in the run that reached it last.
class RecordedMark {
public:
    RecordedMark();
    ~RecordedMark();
    RecordedMark(const RecordedMark&) = delete;
    RecordedMark& operator=(const RecordedMark&) = delete;

    /// On a stream that is being recorded.
    void put(cudaStream_t stream);
    /// After the recording has run.
    double seconds_since(const RecordedMark& start) const;

private:
    cudaEvent_t event_ = nullptr;
};

/// Times the sums of one recording on the device. What it is told of while its stream is not being
/// recorded, it leaves out.
class AllReduceTimes {
public:
    /// Call them around each sum, on the stream that makes it, after what it waits for.
    void begin_sum(cudaStream_t sums) { begin(under_way_, sums); }
    void end_sum(cudaStream_t sums) { end(under_way_, sums); }
    /// Call them around each wait for sums, on the stream that waits.
    void begin_wait(cudaStream_t device) { begin(exposed_, device); }
    void end_wait(cudaStream_t device) { end(exposed_, device); }

    /// Returns the times of the last run, once it is over; none if nothing was recorded.
    std::optional<SumSeconds> last_run() const;

private:
    struct Interval {
        RecordedMark begin, end;
    };
    using Intervals = std::deque<Interval>;

    static void begin(Intervals& intervals, cudaStream_t stream);
    static void end(Intervals& intervals, cudaStream_t stream);
    static double total(const Intervals& intervals);

    Intervals under_way_, exposed_;
};

}  // namespace hpcai::comm
