// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/device/device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/records/step_record.hpp>
#include <hpcai/training/flight_recorder.hpp>
#include <hpcai/training/snapshot.hpp>

namespace hpcai::training {

/// The phases of a step, in the order of metrics::kPhaseSpreads.
enum class Phase { input_wait, forward, backward, communication, optimizer, other };

/// Returns the name of the phase in PhaseSeconds, such as "input_wait".
const char* name_of(Phase phase);

/// Measures the phases of a step; each phase lasts until the next phase begins. Communication time
/// in any phase counts for the phase `communication`.
class PhaseClock {
public:
    /// `communication` returns the seconds spent in communication so far. Each call of begin(),
    /// enter() and end() calls it once. All `now` are seconds of a monotonic clock.
    explicit PhaseClock(std::function<double()> communication)
        : communication_(std::move(communication)) {}

    /// Begins a step in the phase `other`.
    void begin(double now);
    void enter(Phase phase, double now);
    /// Ends the step and returns its phases. Their sum is the time since begin().
    PhaseSeconds end(double now);

    /// The current phase and the time at which it began.
    Phase phase() const { return phase_; }
    double entered_at() const { return phase_begin_; }
    /// Returns the number of calls of begin(), enter() and end().
    std::int64_t readings() const { return readings_; }

private:
    double& seconds(Phase phase) { return seconds_[static_cast<std::size_t>(phase)]; }

    std::function<double()> communication_;
    Phase phase_ = Phase::other;
    double phase_begin_ = 0, last_communication_ = 0;
    std::array<double, 6> seconds_{};
    std::int64_t readings_ = 0;
};

/// Traces `steps` steps of one rank from step kFirstStep on.
class StepTrace final : public graph::Observer {
public:
    /// Counted from 0. Earlier steps may allocate memory or capture the CUDA graph.
    static constexpr std::int64_t kFirstStep = 3;

    StepTrace(std::function<double()> now, std::int64_t steps)
        : now_(std::move(now)), steps_(steps) {}

    bool covers(std::int64_t step) const {
        return step >= kFirstStep && step < kFirstStep + steps_;
    }
    /// Switches tracing on or off for the following calls.
    void enable(bool is_traced) { is_on_ = is_traced; }
    bool is_on() const { return is_on_; }

    void before(const graph::KernelCall&) override { kernel_begin_ = now_(); }
    void after(const graph::KernelCall& call) override;
    /// Adds a phase, or a step, that has ended.
    void phase(Phase phase, double begin, double end);
    void step(std::int64_t number, double begin, double end);
    /// Call it when an all-reduce begins and again when it is complete.
    void log_all_reduce(std::size_t bucket, bool is_complete);

    const std::vector<TraceEvent>& events() const { return events_; }

private:
    std::function<double()> now_;
    std::int64_t steps_;
    bool is_on_ = false;
    double kernel_begin_ = 0;
    std::map<std::size_t, double> all_reduce_begins_;  // of all-reduces in progress, by bucket
    std::vector<TraceEvent> events_;
};

struct StepLogOptions {
    std::function<double()> now;  // returns seconds since the group's clock started
    bool measure_phases = true;
    int trace_steps = 0;               // number of traced steps; needs measure_phases
    FlightRecorder* flight = nullptr;  // records phases and all-reduces, too; may be null
};

/// Logs every training step of one rank with its times. On a synchronous device the times are by
/// the host's clock. On an asynchronous device, the device times the phases if the step was a CUDA
/// graph and its results were read; a step's time is the mean over the steps whose results were
/// read together.
class StepLog {
public:
    /// `device` must outlive this object.
    StepLog(StepLogOptions options, device::Device& device);

    StepLog(const StepLog&) = delete;

    void reserve(std::int64_t steps);
    /// Sets the function that returns the seconds of exposed communication so far.
    void set_communication_clock(std::function<double()> seconds) {
        communication_ = std::move(seconds);
    }

    /// Begins the next step now, instead of at the end of the previous step.
    void begin() { begin(options_.now()); }
    /// Begins the next step at the end of the last logged step, or now if there is none.
    void resume() { begin(steps_.empty() ? options_.now() : steps_.back().end_seconds); }
    void enter(Phase phase);
    /// Logs that the all-reduce of a bucket with `bytes` bytes of gradients began or is complete.
    void log_all_reduce(std::size_t bucket, std::size_t bytes, bool is_complete);
    /// Sets the phases, by the device's clock, of the step whose results were read last.
    void set_device_phases(const PhaseSeconds& phases) { device_phases_ = phases; }
    /// Ends the step and adds the times to its `record`. `is_read`: its results were read.
    void end_step(StepRecord record, bool is_read);

    double now() const { return options_.now(); }
    bool is_asynchronous() const { return is_asynchronous_; }
    /// Returns the observer of the step's kernels; null if the step is not traced or the device is
    /// asynchronous.
    graph::Observer* kernels() { return trace_.is_on() && !is_asynchronous_ ? &trace_ : nullptr; }
    const StepTrace& trace() const { return trace_; }

    const std::vector<StepRecord>& steps() const { return steps_; }  // that have ended, in order
    /// Returns the seconds of each step; on an asynchronous device, up to the last read of results.
    const std::vector<double>& step_seconds() const { return step_seconds_; }
    /// Saves the steps that have ended, except the first `saved` steps. Call it after a step whose
    /// results were read.
    void save(Snapshot& to, std::int64_t saved = 0) const;
    /// Keeps the first `restored` steps of this log. Replaces the others by the steps of save(), up
    /// to number `steps` - 1. Throws Error(data) with the array that does not fit.
    void restore(const Snapshot& from, std::int64_t steps, std::int64_t restored = 0);

    /// Removes the steps after the first `steps`, which will be trained again.
    void truncate(std::int64_t steps);

    bool measures_phases() const { return options_.measure_phases; }
    /// Returns the number of clock readings for phases.
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
    double begin_ = 0, unread_begin_ = 0;
    std::int64_t unread_ = 0;  // steps since results were last read, from unread_begin_ on
    std::optional<PhaseSeconds> device_phases_;
    std::vector<StepRecord> steps_;
    std::vector<double> step_seconds_;
};

/// Adds the kernels of a traced step to the log's trace. Calls `after_kernel` after each kernel.
template <typename AfterKernel>
class KernelObserver final : public graph::Observer {
public:
    KernelObserver(StepLog* log, AfterKernel after_kernel)
        : trace_(log == nullptr ? nullptr : log->kernels()),
          after_kernel_(std::move(after_kernel)) {}

    void before(const graph::KernelCall& call) override {
        if (trace_ != nullptr) trace_->before(call);
    }
    void after(const graph::KernelCall& call) override {
        if (trace_ != nullptr) trace_->after(call);
        after_kernel_(call);
    }

private:
    graph::Observer* trace_;
    AfterKernel after_kernel_;
};

inline void enter(StepLog* log, Phase phase) {
    if (log != nullptr) log->enter(phase);
}

}  // namespace hpcai::training
