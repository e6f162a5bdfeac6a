// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <hpcai/device/device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/records/step_record.hpp>
#include <hpcai/training/flight_recorder.hpp>
#include <hpcai/training/phase_clock.hpp>
#include <hpcai/training/snapshot.hpp>

namespace hpcai::training {

/// Traces the first `steps` steps after the third on one rank, by the host's clock.
class StepTrace final : public graph::Observer {
public:
    /// Earlier steps allocate memory and make plans.
    static constexpr std::int64_t kFirstStep = 3;

    StepTrace(std::function<double()> now, std::int64_t steps)
        : now_(std::move(now)), steps_(steps) {}

    bool has(std::int64_t step) const { return step >= kFirstStep && step < kFirstStep + steps_; }
    /// Switches tracing on or off for the following calls.
    void select(bool is_traced) { is_on_ = is_traced; }

    bool is_on() const { return is_on_; }

    void before(const graph::Step&) override { kernel_begin_ = now_(); }
    void after(const graph::Step& step) override;
    /// Adds a phase that has ended.
    void phase(Phase phase, double begin, double end);
    void step(std::int64_t number, double begin, double end);
    void sum(std::size_t bucket, bool is_over);

    const std::vector<TraceEvent>& events() const { return events_; }

private:
    std::function<double()> now_;
    std::int64_t steps_;
    bool is_on_ = false;
    double kernel_begin_ = 0;
    std::map<std::size_t, double> sums_;  // start of each current all-reduce, by bucket
    std::vector<TraceEvent> events_;
};

struct StepLogOptions {
    std::function<double()> now;  // returns seconds since the group's clock started
    bool measure_phases = true;
    int trace_steps = 0;               // steps to trace from the fourth on; needs measure_phases
    FlightRecorder* flight = nullptr;  // also records phases and all-reduces; may be null
};

/// Logs every training step with its times on one rank. On a synchronous device the times are
/// those of the host's clock. Otherwise the device times a step's phases, and the step's time is
/// the mean over the steps whose results were read together.
class StepLog {
public:
    /// `device` must outlive it.
    StepLog(StepLogOptions options, device::Device& device);

    StepLog(const StepLog&) = delete;
    StepLog& operator=(const StepLog&) = delete;

    /// Reserves memory for that many steps.
    void reserve(std::int64_t steps);
    /// Sets the function that returns the seconds of exposed communication so far.
    void set_communication_clock(std::function<double()> seconds) {
        communication_ = std::move(seconds);
    }

    /// Begins the next step now, for example after a pause. Without a call it begins when the
    /// previous step ends.
    void begin() { begin(options_.now()); }
    /// Begins the next step at the end of the last logged step, which may be from before a resume.
    void resume() { begin(steps_.empty() ? options_.now() : steps_.back().end_seconds); }
    /// Begins a phase of the step.
    void enter(Phase phase);
    /// Logs that the all-reduce of a bucket has begun, with `bytes` on this rank, or is over.
    void sum(std::size_t bucket, std::size_t bytes, bool is_over);
    /// Sets the phases, by the device's clock, of the step whose results were read last.
    void set_device_phases(const PhaseSeconds& phases) { device_phases_ = phases; }
    /// Ends the step. `record` lacks only its times. `is_read`: the step's results were read, so
    /// the device has completed it.
    void end_step(StepRecord record, bool is_read);

    /// Seconds on the group's clock.
    double now() const { return options_.now(); }
    bool is_asynchronous() const { return is_asynchronous_; }
    /// Observer of the step's kernels; null if the step is not traced.
    graph::Observer* kernels() { return trace_.is_on() && !is_asynchronous_ ? &trace_ : nullptr; }
    const StepTrace& trace() const { return trace_; }

    /// The steps that have ended, in order.
    const std::vector<StepRecord>& steps() const { return steps_; }
    /// Seconds of each step; on an asynchronous device, of each step whose results were read.
    const std::vector<double>& step_seconds() const { return step_seconds_; }
    /// Saves all steps that have ended. Call it after a step whose results were read.
    void save(Snapshot& to) const;
    /// Call it before the first step. Restores the `steps` steps of a saved log. Throws Error(data)
    /// with the array that does not fit.
    void restore(const Snapshot& from, std::int64_t steps);

    bool measures_phases() const { return options_.measure_phases; }
    /// Number of clock readings for phases.
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

/// Begins a phase if `log` is not null.
inline void enter(StepLog* log, Phase phase) {
    if (log != nullptr) log->enter(phase);
}

}  // namespace hpcai::training
