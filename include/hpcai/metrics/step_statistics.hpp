// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include <hpcai/records/run_record.hpp>
#include <hpcai/records/step_record.hpp>

namespace hpcai::metrics {

/// A rank whose work takes longer than so many times that of the ranks beside it is a straggler.
inline constexpr double kStragglerRatio = 1.2;

/// What `steps` of one rank, which took `step_seconds`, come to: median, p99 (nearest rank) and the
/// longest; and the mean of each phase over the steps in which it was measured. Unknown (NaN) where
/// there is nothing.
RankRecord summarize(std::span<const StepRecord> steps, std::span<const double> step_seconds);

/// Why numbers of a breakdown are unknown.
struct UnknownReasons {
    std::string phases;
    std::string host_phases;  // input wait and the rest of a step
    std::string hidden_communication;
};

/// Of the ranks of group `group`: each phase's minimum, median, p99 (nearest rank) and maximum over
/// ranks. Stragglers are ranks whose work, input wait, forward and backward together, takes more
/// than kStragglerRatio times its median over the ranks of the same `stage` (by rank).
TimeBreakdownRecord break_down(int group, std::span<const RankRecord> ranks,
                               std::span<const int> stage, const UnknownReasons& reasons);

/// Number by number the largest of `groups`, else the last reason, `none` where there is none; and
/// the stragglers of all.
TimeBreakdownRecord largest(std::span<const TimeBreakdownRecord> groups, const std::string& none);

/// Its phases in the order of a step, each with its name in the record.
struct NamedSpread {
    const char* name;
    SpreadRecord TimeBreakdownRecord::*spread;
    double PhaseSeconds::*phase;
};
inline constexpr NamedSpread kPhaseSpreads[] = {
    {"input_wait", &TimeBreakdownRecord::input_wait, &PhaseSeconds::input_wait},
    {"forward", &TimeBreakdownRecord::forward, &PhaseSeconds::forward},
    {"backward", &TimeBreakdownRecord::backward, &PhaseSeconds::backward},
    {"communication", &TimeBreakdownRecord::communication, &PhaseSeconds::communication},
    {"optimizer", &TimeBreakdownRecord::optimizer, &PhaseSeconds::optimizer},
    {"other", &TimeBreakdownRecord::other, &PhaseSeconds::other},
};

}  // namespace hpcai::metrics
