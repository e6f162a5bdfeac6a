// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/deadline_guard.hpp>
#include <hpcai/training/watchdog.hpp>

namespace hpcai::training {
namespace {

constexpr double kLeastSeconds = 60;
constexpr double kTimesLongest = 10;

using Seconds = std::chrono::duration<double>;

}  // namespace

double StepTimeout::seconds() const {
    if (!longest_) return first_step_;
    if (steps_ > 0) return steps_;
    return std::max(kLeastSeconds, kTimesLongest * *longest_);
}

void StepTimeout::step_took(double seconds) {
    // What the first took is no measure of the others.
    longest_ = longest_ ? std::max(*longest_, seconds) : 0;
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

/// The thread sleeps until the deadline before; it is woken where the new one is nearer.
void Watchdog::restart_locked() {
    last_step_ = Clock::now();
    const Clock::time_point deadline = last_step_ + std::chrono::duration_cast<Clock::duration>(
                                                        Seconds(settings_.timeout.seconds()));
    const bool is_nearer = !deadline_ || deadline < *deadline_;
    deadline_ = deadline;
    if (is_nearer) wake_.notify_all();
}

void Watchdog::begin() {
    go_on();
}

void Watchdog::go_on() {
    check();
    const std::lock_guard lock(mutex_);
    restart_locked();
}

void Watchdog::step_done() {
    check();
    const std::lock_guard lock(mutex_);
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
}

void Watchdog::check() const {
    const std::lock_guard lock(mutex_);
    if (!expired_.empty()) throw Error(ExitCode::watchdog, expired_);
}

double Watchdog::silent_seconds() const {
    const std::lock_guard lock(mutex_);
    return Seconds(Clock::now() - last_step_).count();
}

void Watchdog::watch() {
    std::unique_lock lock(mutex_);
    while (!is_over_) {
        if (!deadline_) {
            wake_.wait(lock);
        } else if (const Clock::time_point deadline = *deadline_; Clock::now() < deadline) {
            wake_.wait_until(lock, deadline);
        } else {
            return give_up(lock);
        }
    }
}

/// Where even the flight record cannot be written, as on a file system that hangs, the guard ends
/// the process all the same.
void Watchdog::give_up(std::unique_lock<std::mutex>& lock) {
    expired_ =
        fmt::format("no step was done for {:.0f} s", Seconds(Clock::now() - last_step_).count());
    const std::string reason = expired_;
    lock.unlock();
    std::optional<comm::DeadlineGuard> guard;
    if (settings_.ends_process) {
        guard.emplace(settings_.grace_seconds, ExitCode::watchdog, "a training step");
    }
    settings_.on_expiry(reason);
    lock.lock();
    wake_.wait(lock, [&] { return is_over_; });
}

}  // namespace hpcai::training
