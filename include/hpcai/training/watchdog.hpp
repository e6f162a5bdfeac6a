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

#include <hpcai/base/clock.hpp>
#include <hpcai/comm/deadline_guard.hpp>

namespace hpcai::training {

/// How long a rank may be without a step done.
class StepTimeout {
public:
    /// Seconds. `steps` 0: learned from the second on, ten times the longest so far, at least 300 s
    /// and what the first took; until then `first_step`.
    StepTimeout(double first_step, double steps) : first_step_(first_step), steps_(steps) {}

    /// The time limit of the next step.
    double seconds() const;
    void step_took(double seconds);
    double longest_seconds() const { return std::max(first_.value_or(0), longest_.value_or(0)); }

private:
    double first_step_, steps_;
    std::optional<double> first_, longest_;  // took; longest_: of those after the first
};

struct WatchdogSettings {
    StepTimeout timeout;
    double grace_seconds = 30;  // of the thread that is watched, to call end()
    // In the watchdog's thread; with the reason, such as "no step was done for 60 s". Throws not.
    std::function<void(const std::string&)> on_expiry;
    // Called likewise from time to time after the grace. Returns whether the process, which is of
    // no more use, may end with ExitCode::watchdog. May be null: it may end.
    std::function<bool()> may_end = {};
    std::string who = "a rank";  // that takes the steps, for the last words of its process
};

/// Watches that a thread's steps go on. It is told by that thread, and looks by one of its own.
class Watchdog {
public:
    explicit Watchdog(WatchdogSettings settings);
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

    /// The first step begins.
    void begin() { resume(); }
    /// Throws Error(watchdog) when it came too late.
    void step_done();
    /// Extends the limit of the next step for work that is no step. Below 0 there is no limit until
    /// the next step_done or resume.
    void allow(double seconds);
    /// Restarts the limit as step_done does, without learning from the time of a step.
    void resume();
    /// Watches no more; the process does not end by it either.
    void end();

    /// Throws Error(watchdog) once time is over. By any thread.
    void check() const;
    double silent_seconds() const;   // since the last step was done; by any thread
    double longest_seconds() const;  // of a step so far; by any thread

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
    Clock::time_point last_sign_ = last_step_;   // that the process runs
    std::optional<Clock::time_point> deadline_;  // none: nothing is watched
    std::string expired_;                        // why; empty: it has not
    std::optional<comm::DeadlineGuard> guard_;   // none: nothing is to end the process
    bool is_over_ = false;
    std::thread thread_;  // the last member: it uses all others
};

}  // namespace hpcai::training
