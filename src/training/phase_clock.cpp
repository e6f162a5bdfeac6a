// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/training/phase_clock.hpp>

namespace hpcai::training {

const char* name_of(Phase phase) {
    static constexpr std::array kNames{"input_wait",    "forward",   "backward",
                                       "communication", "optimizer", "other"};
    return kNames.at(static_cast<std::size_t>(phase));
}

void PhaseClock::begin(double now) {
    seconds_.fill(0);
    phase_ = Phase::other;
    phase_begin_ = now;
    last_communication_ = communication_();
    ++readings_;
}

void PhaseClock::enter(Phase phase, double now) {
    const double communication = communication_();
    const double elapsed = now - phase_begin_;
    // The two clocks may round differently.
    const double communicated = std::clamp(communication - last_communication_, 0.0, elapsed);
    seconds(phase_) += elapsed - communicated;
    seconds(Phase::communication) += communicated;
    phase_ = phase;
    phase_begin_ = now;
    last_communication_ = communication;
    ++readings_;
}

PhaseSeconds PhaseClock::end(double now) {
    enter(Phase::other, now);
    return {seconds(Phase::input_wait),    seconds(Phase::forward),   seconds(Phase::backward),
            seconds(Phase::communication), seconds(Phase::optimizer), seconds(Phase::other)};
}

}  // namespace hpcai::training
