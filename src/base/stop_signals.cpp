// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include <signal.h>

#include <hpcai/base/stop_signals.hpp>

namespace hpcai {
namespace {

// Global, because a signal handler has no parameter for an object.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

/// No signal replaces SIGUSR1, because only SIGTERM may result from the loss of a rank.
extern "C" void remember_signal(int number) {
    if (number == SIGUSR1) return received_signal.store(number, std::memory_order_relaxed);
    int none = 0;
    received_signal.compare_exchange_strong(none, number, std::memory_order_relaxed);
}

void handle(int number, int more_flags) {
    struct sigaction action {};
    action.sa_handler = remember_signal;
    action.sa_flags = SA_RESTART | more_flags;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
    handle(SIGUSR1, 0);
    // The same signal again ends the process at once.
    handle(SIGTERM, static_cast<int>(SA_RESETHAND));
    handle(SIGINT, static_cast<int>(SA_RESETHAND));
}

StopSignals::~StopSignals() {
    signal(SIGUSR1, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
}

int StopSignals::received() noexcept {
    return received_signal.load(std::memory_order_relaxed);
}

}  // namespace hpcai
