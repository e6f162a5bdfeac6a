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

/// Measures the phases of a step; each phase lasts until the next phase begins. Communication time
/// in any phase counts for the phase `communication`.
class PhaseClock {
public:
    /// `communication` returns the seconds spent in communication so far. Each call of begin(),
    /// enter() and end() calls it once. All `now` are seconds of a monotonic clock.
    explicit PhaseClock(std::function<double()> communication)
        : communication_(std::move(communication)) {}

    /// Begins a step in the phase `other`.
    void begin(double now);
    void enter(Phase phase, double now);
    /// Ends the step and returns its phases. Their sum is the time since begin().
    PhaseSeconds end(double now);

    Phase phase() const { return phase_; }
    double entered_at() const { return phase_begin_; }
    /// Returns the number of calls of begin(), enter() and end().
    std::int64_t readings() const { return readings_; }

private:
    double& seconds(Phase phase) { return seconds_[static_cast<std::size_t>(phase)]; }

    std::function<double()> communication_;
    Phase phase_ = Phase::other;
    double phase_begin_ = 0, last_communication_ = 0;
    std::array<double, 6> seconds_{};
    std::int64_t readings_ = 0;
};

}  // namespace hpcai::training
