// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include <signal.h>

#include <hpcai/base/stop_signals.hpp>

namespace hpcai {
namespace {

// Global, because a signal handler has no parameter for an object.
std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

/// Keeps the first signal, unless SIGUSR1 follows, which always means a request to stop.
extern "C" void record_signal(int number) {
    if (number == SIGUSR1) return received_signal.store(number, std::memory_order_relaxed);
    int expected = 0;
    received_signal.compare_exchange_strong(expected, number, std::memory_order_relaxed);
}

void install_handler(int number, int extra_flags) {
    struct sigaction action {};
    action.sa_handler = record_signal;
    action.sa_flags = SA_RESTART | extra_flags;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
    install_handler(SIGUSR1, 0);
    // A second SIGTERM or SIGINT ends the process at once.
    install_handler(SIGTERM, static_cast<int>(SA_RESETHAND));
    install_handler(SIGINT, static_cast<int>(SA_RESETHAND));
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
