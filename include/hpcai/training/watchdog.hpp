// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <hpcai/comm/deadline_guard.hpp>

namespace hpcai::training {

/// The time limit of a step.
class StepTimeout {
public:
    /// Time limits in seconds: `first_step` for the first step, `steps` for later ones. If `steps`
    /// is 0: `first_step` for the second step too, then ten times the longest step after the first,
    /// at least 300 s and at least the duration of the first step.
    StepTimeout(double first_step, double steps) : first_step_(first_step), steps_(steps) {}

    /// The time limit of the next step.
    double seconds() const;
    void step_took(double seconds);
    double longest_seconds() const { return std::max(first_.value_or(0), longest_.value_or(0)); }

private:
    double first_step_, steps_;
    // seconds of the first step and of the longest later one
    std::optional<double> first_, longest_;
};

struct WatchdogSettings {
    StepTimeout timeout;
    double grace_seconds = 30;  // time for the watched thread to call end() after expiry
    // Called in the watchdog's thread with the reason, such as "no step was done for 60 s". Must
    // not throw.
    std::function<void(const std::string&)> on_expiry;
    // Called in the watchdog's thread every few seconds after the grace period. Returns whether the
    // process, which cannot continue, may end with ExitCode::watchdog. Null: it may end.
    std::function<bool()> may_end = {};
    std::string rank_name = "a rank";  // the watched rank, for the last message of the process
};

/// Monitors that a thread completes steps in time. That thread makes the calls; a thread of the
/// watchdog checks the deadline.
class Watchdog {
public:
    explicit Watchdog(WatchdogSettings settings);
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

    /// Starts the time of the first step.
    void begin() { resume(); }
    /// Ends a step. Throws Error(watchdog) if it is too late.
    void step_done();
    /// Extends the limit of the next step for work outside of steps. With negative `seconds` there
    /// is no limit until the next step_done or resume.
    void allow(double seconds);
    /// Restarts the time limit as step_done does, but does not learn from the elapsed time.
    void resume();
    /// Stops monitoring; the watchdog does not end the process any more.
    void end();

    /// Throws Error(watchdog) after expiry. Thread-safe.
    void check() const;
    double silent_seconds() const;   // since the last step was done; thread-safe
    double longest_seconds() const;  // of a step so far; thread-safe

private:
    using Clock = std::chrono::steady_clock;

    void watch();
    void restart_locked();
    void expire(std::unique_lock<std::mutex>& lock);
    void leave_out_suspension_locked();
    bool is_unnoticed_locked() const { return !is_over_ && guard_; }

    WatchdogSettings settings_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    Clock::time_point last_step_ = Clock::now();
    Clock::time_point last_sign_ = last_step_;   // last sign that the process was running
    std::optional<Clock::time_point> deadline_;  // none: not monitoring
    std::string expired_;                        // reason; empty: not expired
    std::optional<comm::DeadlineGuard> guard_;   // ends the process; none: not armed
    bool is_over_ = false;
    std::thread thread_;  // last member: it uses all others
};

}  // namespace hpcai::training
