// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include <hpcai/records/step_record.hpp>

namespace hpcai::training {

enum class Phase { input_wait, forward, backward, communication, optimizer, other };

/// Returns the name of the phase in PhaseSeconds, such as "input_wait".
const char* name_of(Phase phase);

/// Divides the time of a step among its phases; each phase lasts until the next begins. Time spent
/// in communication counts as such in any phase.
class PhaseClock {
public:
    /// `communication` returns the seconds spent in communication so far; begin(), enter() and
    /// end() call it once each. All `now` are seconds of a monotonic clock.
    explicit PhaseClock(std::function<double()> communication)
        : communication_(std::move(communication)) {}

    /// Begins a step in the phase `other`.
    void begin(double now);
    void enter(Phase phase, double now);
    /// Ends the step. The sum of its phases is the time since begin().
    PhaseSeconds end(double now);

    Phase phase() const { return phase_; }
    double entered_at() const { return last_; }
    /// Number of calls of begin(), enter() and end().
    std::int64_t readings() const { return readings_; }

private:
    double& seconds(Phase phase) { return seconds_[static_cast<std::size_t>(phase)]; }

    std::function<double()> communication_;
    Phase phase_ = Phase::other;
    double last_ = 0, last_communication_ = 0;
    std::array<double, 6> seconds_{};
    std::int64_t readings_ = 0;
};

}  // namespace hpcai::training
