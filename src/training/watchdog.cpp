// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <hpcai/base/error.hpp>
#include <hpcai/training/watchdog.hpp>

namespace hpcai::training {
namespace {

constexpr double kMinSeconds = 300;  // tolerates the failover of a file system
constexpr double kTimesLongest = 10;
constexpr double kFileSystemSeconds = 3600;  // time limit for a file system that does not answer
constexpr std::chrono::seconds kBetweenPolls{2};
constexpr std::chrono::seconds kMaxSilence{5};  // of a running process

using Seconds = std::chrono::duration<double>;

}  // namespace

double StepTimeout::seconds() const {
    if (first_ && steps_ > 0) return steps_;
    if (!longest_) return first_step_;
    return std::max({kMinSeconds, *first_, kTimesLongest * *longest_});
}

void StepTimeout::step_took(double seconds) {
    if (!first_) {
        first_ = seconds;
    } else {
        longest_ = std::max(longest_.value_or(0), seconds);
    }
}

Watchdog::Watchdog(WatchdogSettings settings)
    : settings_(std::move(settings)), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
    {
        const std::lock_guard lock(mutex_);
        is_over_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

/// Wakes the thread only if the new deadline is earlier.
void Watchdog::restart_locked() {
    last_step_ = last_sign_ = Clock::now();
    const Clock::time_point deadline = last_step_ + std::chrono::duration_cast<Clock::duration>(
                                                        Seconds(settings_.timeout.seconds()));
    const bool is_nearer = !deadline_ || deadline < *deadline_;
    deadline_ = deadline;
    if (is_nearer) wake_.notify_all();
}

void Watchdog::resume() {
    check();
    const std::lock_guard lock(mutex_);
    restart_locked();
}

void Watchdog::step_done() {
    check();
    const std::lock_guard lock(mutex_);
    leave_out_suspension_locked();
    settings_.timeout.step_took(Seconds(Clock::now() - last_step_).count());
    restart_locked();
}

void Watchdog::allow(double seconds) {
    const std::lock_guard lock(mutex_);
    if (!deadline_) return;
    if (seconds < 0) {
        deadline_.reset();
    } else {
        *deadline_ += std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
    }
}

void Watchdog::end() {
    const std::lock_guard lock(mutex_);
    deadline_.reset();
    guard_.reset();
}

void Watchdog::check() const {
    const std::lock_guard lock(mutex_);
    if (!expired_.empty()) throw Error(ExitCode::watchdog, expired_);
}

double Watchdog::silent_seconds() const {
    const std::lock_guard lock(mutex_);
    return Seconds(Clock::now() - last_step_).count();
}

double Watchdog::longest_seconds() const {
    const std::lock_guard lock(mutex_);
    return settings_.timeout.longest_seconds();
}

void Watchdog::watch() {
    constexpr Clock::duration kTick = std::chrono::seconds(1);
    std::unique_lock lock(mutex_);
    while (!is_over_) {
        leave_out_suspension_locked();
        if (!deadline_) {
            wake_.wait(lock);
        } else if (Clock::now() < *deadline_) {
            wake_.wait_until(lock, std::min(*deadline_, last_sign_ + kTick));
        } else {
            return expire(lock);
        }
    }
}

/// Excludes time in which the whole process was stopped, for example by `scontrol suspend`. After
/// such a stop, either thread may be the first to run and call this.
void Watchdog::leave_out_suspension_locked() {
    const Clock::time_point now = Clock::now();
    const Clock::duration silence = now - std::exchange(last_sign_, now);
    if (silence < kMaxSilence || !deadline_) return;
    *deadline_ += silence;
    last_step_ += silence;
}

/// The guard also ends the process if a callback hangs, for example on a file system.
void Watchdog::expire(std::unique_lock<std::mutex>& lock) {
    expired_ =
        fmt::format("no step was done for {:.0f} s", Seconds(Clock::now() - last_step_).count());
    const std::string reason = expired_;
    const auto end_in = [this](double seconds) {
        guard_.emplace(seconds, ExitCode::watchdog, "a training step of " + settings_.rank_name);
    };
    end_in(settings_.may_end ? kFileSystemSeconds : settings_.grace_seconds);
    lock.unlock();
    settings_.on_expiry(reason);
    lock.lock();
    const auto grace =
        std::chrono::duration_cast<Clock::duration>(Seconds(settings_.grace_seconds));
    const Clock::time_point last_moment = Clock::now() + grace;
    while (is_unnoticed_locked()) {
        wake_.wait_for(lock, kBetweenPolls);
        if (!settings_.may_end || Clock::now() < last_moment || !is_unnoticed_locked()) continue;
        end_in(kFileSystemSeconds);
        lock.unlock();
        const bool may_end = settings_.may_end();
        lock.lock();
        if (may_end && is_unnoticed_locked()) end_in(0);
    }
    wake_.wait(lock, [&] { return is_over_; });
}

}  // namespace hpcai::training
