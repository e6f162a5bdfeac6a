// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include <hpcai/comm/deadline_guard.hpp>

namespace hpcai::training {

/// The time limit of a step.
class StepTimeout {
public:
    /// Time limits in seconds of the first step and of later steps. If `later_limit` is 0, the
    /// second step has `first_limit`, too, and later steps have ten times the duration of the
    /// longest step after the first, but at least 300 s and at least the duration of the first
    /// step.
    StepTimeout(double first_limit, double later_limit)
        : first_limit_(first_limit), later_limit_(later_limit) {}

    /// Returns the time limit of the next step.
    double seconds() const;
    void add_step(double seconds);
    /// Forgets all steps, because another model is trained from now on.
    void restart() { *this = StepTimeout(first_limit_, later_limit_); }
    double longest_seconds() const { return std::max(first_.value_or(0), longest_.value_or(0)); }

private:
    double first_limit_, later_limit_;
    std::optional<double> first_, longest_;  // seconds of the first and the longest later step
};

struct WatchdogSettings {
    StepTimeout timeout;
    double grace_seconds = 30;  // from expiry until the watched thread must have called end()
    // The watchdog's thread calls it with the reason ("no step was done for 60 s"). Must not throw.
    std::function<void(const std::string&)> on_expiry;
    // The watchdog's thread calls it every few seconds after the grace period. Returns whether the
    // process, which cannot continue, may end with ExitCode::watchdog. Null: it may end.
    std::function<bool()> may_end = {};
    std::string rank_name = "a rank";  // the watched rank, for the last message of the process
};

/// Checks that the thread that calls step_done() completes steps in time.
class Watchdog {
public:
    explicit Watchdog(WatchdogSettings settings);
    ~Watchdog();

    /// Starts the time of the first step of a model.
    void begin();
    /// Ends a step. Throws Error(watchdog) after expiry.
    void step_done();
    /// Extends the time limit of the next step by `seconds` for work outside of steps. A negative
    /// number removes the limit until the next step_done or resume.
    void allow(double seconds);
    /// Restarts the time limit like step_done, but ignores the duration of the step.
    void resume();
    /// Stops monitoring; the watchdog does not end the process any more.
    void end();

    /// Throws Error(watchdog) after expiry. Thread-safe.
    void check() const;
    double silent_seconds() const;   // since the last step_done() or resume(); thread-safe
    double longest_seconds() const;  // of any step so far; thread-safe

private:
    using Clock = std::chrono::steady_clock;

    void watch();
    void restart_locked();
    void expire(std::unique_lock<std::mutex>& lock);
    void exclude_suspension_locked();
    bool must_end_process_locked() const { return !is_stopping_ && guard_; }

    WatchdogSettings settings_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    Clock::time_point last_step_ = Clock::now();
    Clock::time_point last_awake_ = last_step_;  // when the process last ran
    std::optional<Clock::time_point> deadline_;  // none: not monitoring
    std::string expired_;                        // reason; empty: not expired
    std::optional<comm::DeadlineGuard> guard_;   // ends the process; none: not armed
    bool is_stopping_ = false;
    std::thread thread_;  // last member, because it uses all others
};

}  // namespace hpcai::training
