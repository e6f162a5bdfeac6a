// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hpcai::group {

/// The durations that add up to a stop: the wait for the next poll, then a checkpoint.
struct StopCosts {
    double copy_seconds = 0;      // longest copy to host memory so far
    double write_seconds = 0;     // longest write so far; 0: none yet
    double poll_seconds = 0;      // between two polls
    std::size_t first_bytes = 0;  // of this rank's first checkpoint
};

/// Returns how many seconds before run.time_limit_seconds a run must begin to stop. At most half of
/// the limit, because a short limit would otherwise leave no time to train.
inline double checkpoint_lead_seconds(const StopCosts& costs, double limit_seconds) {
    // Assumed for the first write, to a busy file system.
    constexpr double kFirstWriteSeconds = 2;
    constexpr double kFirstWriteBytesPerSecond = 32.0 * (1 << 20);
    constexpr double kMaxShare = 0.5;  // of the limit
    // The previous write may still run when the final checkpoint begins.
    const double write = costs.write_seconds > 0
                             ? 2 * costs.write_seconds
                             : kFirstWriteSeconds + static_cast<double>(costs.first_bytes) /
                                                        kFirstWriteBytesPerSecond;
    return std::min(costs.copy_seconds + write + 2 * costs.poll_seconds, kMaxShare * limit_seconds);
}

/// Phases at a fixed interval of steps in which the run cannot stop, such as evaluations.
class UninterruptiblePhases {
public:
    void set_interval(std::int64_t steps) { steps_ = steps; }  // 0: there is no such phase

    void add(double seconds) { longest_seconds_ = std::max(longest_seconds_, seconds); }

    bool is_due(std::int64_t steps_done) const { return steps_ > 0 && steps_done % steps_ == 0; }

    /// Returns the seconds of the longest phase so far if one follows `steps_done` steps; else 0.
    double seconds_after(std::int64_t steps_done) const {
        return is_due(steps_done) ? longest_seconds_ : 0;
    }

private:
    std::int64_t steps_ = 0;
    double longest_seconds_ = 0;
};

}  // namespace hpcai::group
