// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace hpcai::benchmark {

/// What lies between the last look at which a run goes on and the end of its last checkpoint.
struct StopCosts {
    double copy_seconds = 0;      // of the longest copy to host memory so far
    double write_seconds = 0;     // of the longest write so far; 0: none has been seen
    double look_seconds = 0;      // between two looks
    std::size_t first_bytes = 0;  // to be written, where none has been
};

/// How many seconds before the end of run.time_limit_seconds a run is to stop, that it has stopped
/// by then; never more than half of the limit, or a short one would leave no time to train.
double stop_margin(const StopCosts& costs, double limit_seconds);

}  // namespace hpcai::benchmark
