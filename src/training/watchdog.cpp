// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <hpcai/training/watchdog.hpp>

namespace hpcai::training {
namespace {

constexpr double kMinLimitSeconds = 300;  // tolerates the failover of a file system
constexpr double kLongestStepFactor = 10;
constexpr double kFileSystemSeconds = 3600;  // time limit for a file system that does not answer
constexpr std::chrono::seconds kPollInterval{2};
constexpr std::chrono::seconds kMaxAwakeGap{5};  // longer: the process was suspended

using Seconds = std::chrono::duration<double>;

}  // namespace

double StepTimeout::seconds() const {
    if (first_ && later_limit_ > 0) return later_limit_;
    if (!longest_) return first_limit_;
    return std::max({kMinLimitSeconds, *first_, kLongestStepFactor * *longest_});
}

void StepTimeout::add_step(double seconds) {
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
        is_stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

/// Wakes the thread only if the new deadline is the first or earlier than the previous one.
void Watchdog::restart_locked() {
    last_step_ = last_awake_ = Clock::now();
    const Clock::time_point deadline = last_step_ + std::chrono::duration_cast<Clock::duration>(
                                                        Seconds(settings_.timeout.seconds()));
    const bool is_nearer = !deadline_ || deadline < *deadline_;
    deadline_ = deadline;
    if (is_nearer) wake_.notify_all();
}

void Watchdog::begin() {
    check();
    const std::lock_guard lock(mutex_);
    settings_.timeout.restart();
    restart_locked();
}

void Watchdog::resume() {
    check();
    const std::lock_guard lock(mutex_);
    restart_locked();
}

void Watchdog::step_done() {
    check();
    const std::lock_guard lock(mutex_);
    exclude_suspension_locked();
    settings_.timeout.add_step(Seconds(Clock::now() - last_step_).count());
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
    while (!is_stopping_) {
        exclude_suspension_locked();
        if (!deadline_) {
            wake_.wait(lock);
        } else if (Clock::now() < *deadline_) {
            wake_.wait_until(lock, std::min(*deadline_, last_awake_ + kTick));
        } else {
            return expire(lock);
        }
    }
}

/// Excludes time in which the process was suspended, for example by `scontrol suspend`. The watched
/// thread calls it, too, because either thread may run first after a suspension.
void Watchdog::exclude_suspension_locked() {
    const Clock::time_point now = Clock::now();
    const Clock::duration gap = now - std::exchange(last_awake_, now);
    if (gap < kMaxAwakeGap || !deadline_) return;
    *deadline_ += gap;
    last_step_ += gap;
}

/// The guard also ends the process if a callback hangs, for example on a file system.
void Watchdog::expire(std::unique_lock<std::mutex>& lock) {
    expired_ =
        fmt::format("no step was done for {:.0f} s", Seconds(Clock::now() - last_step_).count());
    const std::string reason = expired_;
    const auto end_process_in = [this](double seconds) {
        guard_.emplace(seconds, ExitCode::watchdog, "after a step timeout, " + settings_.rank_name);
    };
    end_process_in(settings_.may_end ? kFileSystemSeconds : settings_.grace_seconds);
    lock.unlock();
    settings_.on_expiry(reason);
    lock.lock();
    const auto grace =
        std::chrono::duration_cast<Clock::duration>(Seconds(settings_.grace_seconds));
    const Clock::time_point grace_end = Clock::now() + grace;
    while (must_end_process_locked()) {
        wake_.wait_for(lock, kPollInterval);
        if (!settings_.may_end || Clock::now() < grace_end || !must_end_process_locked()) continue;
        end_process_in(kFileSystemSeconds);
        lock.unlock();
        const bool may_end = settings_.may_end();
        lock.lock();
        if (may_end && must_end_process_locked()) end_process_in(0);
    }
    wake_.wait(lock, [&] { return is_stopping_; });
}

}  // namespace hpcai::training
