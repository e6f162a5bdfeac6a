// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <hpcai/base/clock.hpp>

namespace hpcai::group {

/// The clock of a group's training, from the end of its start-up. It stops during evaluations.
class TrainingClock {
public:
    double seconds() const { return stopped_at_.value_or(watch_.seconds() - offset_seconds_); }
    /// Adds the `seconds` of an earlier launch.
    void add(double seconds) { offset_seconds_ -= seconds; }
    void stop() { stopped_at_ = seconds(); }
    void resume() {
        offset_seconds_ = watch_.seconds() - *stopped_at_;
        stopped_at_.reset();
    }

private:
    Stopwatch watch_;
    double offset_seconds_ = 0;
    std::optional<double> stopped_at_;
};

}  // namespace hpcai::group
