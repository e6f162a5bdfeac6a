// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include <hpcai/records/step_record.hpp>

namespace hpcai::training {

enum class Phase { input_wait, forward, backward, communication, optimizer, other };

/// "input_wait", ...
const char* name_of(Phase phase);

/// Divides the time of a step among its phases, of which one lasts until the next is entered. What
/// is spent in communication counts as that, whatever the phase. Costs one reading of both a phase.
class PhaseClock {
public:
    /// `now`: seconds on a clock that never steps back. `communication`: seconds that were spent
    /// in communication so far, by that clock.
    PhaseClock(std::function<double()> now, std::function<double()> communication);

    /// A step begins, with the phase `other`.
    void begin() { begin(now_()); }
    void begin(double now);
    void enter(Phase phase) { enter(phase, now_()); }
    void enter(Phase phase, double now);
    /// Ends the step: its phases add up to the time since begin().
    PhaseSeconds end() { return end(now_()); }
    PhaseSeconds end(double now);

    Phase phase() const { return phase_; }
    double entered_at() const { return last_; }
    /// How often the clocks have been read.
    std::int64_t readings() const { return readings_; }

private:
    double& seconds(Phase phase) { return seconds_[static_cast<std::size_t>(phase)]; }

    std::function<double()> now_, communication_;
    Phase phase_ = Phase::other;
    double last_ = 0, last_communication_ = 0;
    std::array<double, 6> seconds_{};
    std::int64_t readings_ = 0;
};

}  // namespace hpcai::training
