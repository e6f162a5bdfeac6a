// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <hpcai/base/clock.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/records/step_record.hpp>
#include <hpcai/training/step_log.hpp>

namespace hpcai::group {

/// The clock of a group's training, from its construction. It stops while the group evaluates.
class TrainingClock {
public:
    double seconds() const { return stopped_at_.value_or(watch_.seconds() - offset_seconds_); }
    /// Adds the `seconds` of an earlier launch.
    void add(double seconds) { offset_seconds_ -= seconds; }
    void stop() { stopped_at_ = seconds(); }
    void resume() {
        offset_seconds_ = watch_.seconds() - *stopped_at_;
        stopped_at_.reset();
    }

private:
    Stopwatch watch_;
    double offset_seconds_ = 0;
    std::optional<double> stopped_at_;
};

struct StepTimes {
    std::vector<RankRecord> ranks;  // by group rank
    TimeBreakdownRecord breakdown;
    std::string trace;  // the text of trace.json at the leader; empty without run.trace
};

/// Makes the configured log of this rank's steps. All arguments outlive it.
training::StepLog make_step_log(const config::RunConfig& run, device::Device& device,
                                const TrainingClock& clock, training::FlightRecorder& flight);

/// Gathers the times of all ranks after training. `overlapped_seconds` is the time per step in
/// which this rank's all-reduces overlapped with computation. Collective in the group.
StepTimes gather_step_times(const context::RunContext& context, comm::Communicator& group,
                            const training::StepLog& steps, const Quantity& overlapped_seconds);

}  // namespace hpcai::group
