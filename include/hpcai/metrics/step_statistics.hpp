// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <hpcai/records/run_record.hpp>
#include <hpcai/records/step_record.hpp>

namespace hpcai::metrics {

/// A rank is a straggler if its work takes longer than this ratio times the median of the ranks of
/// its pipeline stage.
inline constexpr double kStragglerRatio = 1.2;

/// Summarizes the steps of one rank: median, p99 (nearest-rank method) and maximum of
/// `step_seconds`, and the mean of each phase over the steps in which it was measured. Unmeasured
/// numbers are NaN.
RankRecord summarize(std::span<const StepRecord> steps, std::span<const double> step_seconds);

/// Reasons why numbers of a breakdown are unknown.
struct UnknownReasons {
    std::string phases;
    std::string host_phases;  // reason for the phases `input_wait` and `other`
    std::string overlapped_communication;
};

/// Summarizes the ranks of `group`: the median of their median step times; the minimum, median, p99
/// (nearest-rank method) and maximum of each phase and of overlapped communication; the stragglers.
/// `stage` has the pipeline stage of each rank. A rank's work is the sum of input wait, forward and
/// backward, without phases that are unknown on any rank of its stage.
TimeBreakdownRecord break_down(int group, std::span<const RankRecord> ranks,
                               std::span<const int> stage, const UnknownReasons& reasons);

/// Returns the maximum of each number over all groups, with the stragglers of all groups. A number
/// that is unknown in all groups has the reason of the last group that gives one, else `no_reason`.
TimeBreakdownRecord maximum_over_groups(std::span<const TimeBreakdownRecord> groups,
                                        const std::string& no_reason);

/// A phase, and its members in TimeBreakdownRecord and PhaseSeconds.
struct NamedSpread {
    const char* name;
    SpreadRecord TimeBreakdownRecord::*spread;
    double PhaseSeconds::*phase;
};
/// The phases in the order of a step.
inline constexpr NamedSpread kPhaseSpreads[] = {
    {"input_wait", &TimeBreakdownRecord::input_wait, &PhaseSeconds::input_wait},
    {"forward", &TimeBreakdownRecord::forward, &PhaseSeconds::forward},
    {"backward", &TimeBreakdownRecord::backward, &PhaseSeconds::backward},
    {"communication", &TimeBreakdownRecord::communication, &PhaseSeconds::communication},
    {"optimizer", &TimeBreakdownRecord::optimizer, &PhaseSeconds::optimizer},
    {"other", &TimeBreakdownRecord::other, &PhaseSeconds::other},
};

}  // namespace hpcai::metrics
