// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

namespace hpcai {

/// Measures elapsed time on a clock that never steps back.
class Stopwatch {
public:
    /// Seconds since construction or the last restart.
    double seconds() const { return Seconds(Clock::now() - start_).count(); }

    /// Restarts at zero and returns the seconds measured so far.
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

/// Wall-clock time in UTC with whole seconds, e.g. "2022-11-05T14:03:09Z" (ISO 8601).
std::string utc_iso8601(std::chrono::system_clock::time_point when);

/// The current time in the format of utc_iso8601().
std::string utc_now();

/// The current time as part of a file name, e.g. "20221105T140309Z"; sorts by time.
std::string utc_now_compact();

}  // namespace hpcai
