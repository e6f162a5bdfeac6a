// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <hpcai/device/device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/records/step_record.hpp>
#include <hpcai/training/flight_recorder.hpp>
#include <hpcai/training/phase_clock.hpp>
#include <hpcai/training/snapshot.hpp>
#include <hpcai/training/step_trace.hpp>

namespace hpcai::training {

struct StepLogOptions {
    std::function<double()> now;  // seconds since the group's clock started
    bool measure_phases = true;
    int trace_steps = 0;               // from the fourth on; needs measure_phases
    FlightRecorder* flight = nullptr;  // told of phases and sums; null: nobody asks
};

/// Keeps every step of a training, with its times, on one rank. Where the device does its work at
/// once they are those of the host's clock; else a step's phases are those that the device has
/// timed, and its time is the mean over the steps whose results were read together.
class StepLog {
public:
    /// `device` outlives it.
    StepLog(StepLogOptions options, device::Device& device);

    StepLog(const StepLog&) = delete;
    StepLog& operator=(const StepLog&) = delete;

    /// Makes room for so many steps.
    void reserve(std::int64_t steps);
    /// Sets the function that returns the seconds so far of communication without computation.
    void count_communication(std::function<double()> seconds) {
        communication_ = std::move(seconds);
    }

    /// The next step begins, after a pause: else it does where the one before ends.
    void begin() { begin(options_.now()); }
    /// The next step begins where the one before ended, in another program perhaps.
    void resume() { begin(steps_.empty() ? options_.now() : steps_.back().end_seconds); }
    /// Begins a phase of the step.
    void enter(Phase phase);
    /// A sum of gradients over ranks has begun, of so many bytes of this one, or has ended.
    void sum(std::size_t bucket, std::size_t bytes, bool is_over);
    /// Sets the phases, by the device's clock, of the step whose results have just been read.
    void timed_by_device(const PhaseSeconds& phases) { device_phases_ = phases; }
    /// Ends the step. `record` is complete but for its times; `is_read`: its results have been
    /// read, so that the device has done it.
    void end_step(StepRecord record, bool is_read);

    /// On the group's clock.
    double now() const { return options_.now(); }
    bool is_asynchronous() const { return is_asynchronous_; }
    /// Sees the kernels of the step; null while it is not to be traced.
    graph::Observer* kernels() { return trace_.is_on() && !is_asynchronous_ ? &trace_ : nullptr; }
    const StepTrace& trace() const { return trace_; }

    /// In order, those that have ended.
    const std::vector<StepRecord>& steps() const { return steps_; }
    /// Seconds from the beginning to the end of each step whose results were read.
    const std::vector<double>& step_seconds() const { return step_seconds_; }
    /// Saves all steps that have ended, after one whose results were read.
    void save(Snapshot& to) const;
    /// Before the first step: has those of another log, of `steps` steps. Throws Error(data) naming
    /// the array that does not fit.
    void restore(const Snapshot& from, std::int64_t steps);

    bool measures_phases() const { return options_.measure_phases; }
    /// Readings of the clock for phases.
    std::int64_t readings() const { return clock_.readings(); }

private:
    void begin(double now);
    void trace_device(const StepRecord& record);

    StepLogOptions options_;
    device::Device& device_;
    bool is_asynchronous_;
    std::function<double()> communication_ = [] { return 0.0; };
    PhaseClock clock_;
    StepTrace trace_;
    double begin_ = 0, begin_of_unread_ = 0;
    std::int64_t unread_ = 0;
    std::optional<PhaseSeconds> device_phases_;
    std::vector<StepRecord> steps_;
    std::vector<double> step_seconds_;
};

/// Begins a phase if there is a log.
inline void enter(StepLog* log, Phase phase) {
    if (log != nullptr) log->enter(phase);
}

}  // namespace hpcai::training
