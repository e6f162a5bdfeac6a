// SPDX-License-Identifier: Apache-2.0
#include "checkpoint_lead_time.hpp"

#include <algorithm>

namespace hpcai::group {

double checkpoint_lead_seconds(const StopCosts& costs, double limit_seconds) {
    // These values are those of a busy file system.
    constexpr double kFirstWriteSeconds = 2;
    constexpr double kFirstWriteBytesPerSecond = 32.0 * (1 << 20);
    constexpr double kLargest = 0.5;  // of the limit
    // A write may be under way when the last one begins.
    const double write = costs.write_seconds > 0
                             ? 2 * costs.write_seconds
                             : kFirstWriteSeconds + static_cast<double>(costs.first_bytes) /
                                                        kFirstWriteBytesPerSecond;
    return std::min(costs.copy_seconds + write + 2 * costs.look_seconds, kLargest * limit_seconds);
}

}  // namespace hpcai::group
