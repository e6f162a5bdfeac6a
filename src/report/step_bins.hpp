// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include <hpcai/records/step_record.hpp>

#include "chart.hpp"

/// Per-step records thinned out for plots.
namespace hpcai::report {

using GroupSteps = std::vector<std::vector<StepRecord>>;  // by group

bool has_steps(const GroupSteps& steps);

/// The training loss by step, each point the mean of a bin of neighbouring steps that have one.
Series loss_by_step(std::string name, std::span<const StepRecord> steps, std::size_t bins);

/// Samples a second over the group's time, in `bins` equal parts of 0 to `seconds`; NaN after the
/// last step.
Series speed_over_time(std::string name, std::span<const StepRecord> steps, double seconds,
                       std::size_t bins);

/// Median, least and greatest of `series` over their common range of x; series of other lengths
/// take part where they are.
struct Spread {
    Series median;
    Band band;
};

Spread spread_of(const std::vector<Series>& series, std::size_t points);

/// Adds a line for each of up to eight `series` to `plot`, else their spread at so many points.
void show(std::vector<Series> series, std::size_t points, LinePlot& plot);

/// The phases of a step: their names, and their seconds in one step, in the same order.
const std::vector<std::string>& phase_names();
std::vector<double> phase_seconds(const PhaseSeconds& phases);

/// Each phase's seconds summed over `steps`; NaN where no step has it.
std::vector<double> phase_totals(std::span<const StepRecord> steps);

/// Mean seconds of each phase in each bin of neighbouring steps; [phase][bin], and where the bins
/// lie. What a step lacks counts as 0.
struct PhaseBins {
    std::vector<double> step;
    std::vector<std::vector<double>> seconds;
};
PhaseBins phase_bins(std::span<const StepRecord> steps, std::size_t bins);

}  // namespace hpcai::report
