// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace hpcai {

/// Measures elapsed time with a monotonic clock.
class Stopwatch {
public:
    /// Seconds since construction or the last restart.
    double seconds() const { return Seconds(Clock::now() - start_).count(); }

    /// Returns the elapsed seconds and restarts at zero.
    double restart() {
        const Clock::time_point now = Clock::now();
        const double elapsed = Seconds(now - start_).count();
        start_ = now;
        return elapsed;
    }

private:
    using Clock = std::chrono::steady_clock;
    using Seconds = std::chrono::duration<double>;

    Clock::time_point start_ = Clock::now();
};

/// Formats a time in UTC, rounded down to seconds, e.g. "2022-11-05T14:03:09Z" (ISO 8601).
std::string utc_iso8601(std::chrono::system_clock::time_point when);

/// The current time in the format of utc_iso8601().
std::string utc_now();

/// The current time in UTC for file names, e.g. "20221105T140309Z"; names sort chronologically.
std::string utc_now_compact();

}  // namespace hpcai
