// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <fmt/core.h>
#include <signal.h>

#include <hpcai/base/stop_signals.hpp>

namespace hpcai::group {

// Stop requests in ascending priority. The group follows the highest of its ranks' requests. They
// are doubles for all_reduce_max().
inline constexpr double kContinue = 0, kTimeLimit = 1, kTerminate = 2, kInterrupt = 3,
                        kUserSignal = 4;

inline constexpr double kSecondsBetweenPolls = 1;  // the ranks agree in a poll whether to stop

/// Returns the request of the signals that this process has received, else kContinue.
inline double signalled_request() {
    const int signal = StopSignals::received();
    if (signal == SIGUSR1) return kUserSignal;
    if (signal == SIGINT) return kInterrupt;
    return signal == SIGTERM ? kTerminate : kContinue;
}

inline std::string cause_of(double request, double time_limit_seconds) {
    if (request == kUserSignal) return "SIGUSR1";
    if (request == kInterrupt) return "SIGINT";
    if (request == kTerminate) return "SIGTERM (Ctrl-C, a lost rank or the batch system)";
    return fmt::format("run.time_limit_seconds {}", time_limit_seconds);
}

}  // namespace hpcai::group
