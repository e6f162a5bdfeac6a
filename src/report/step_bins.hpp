// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include <hpcai/records/step_record.hpp>

#include "chart.hpp"

/// Per-step records averaged for plots.
namespace hpcai::report {

using GroupSteps = std::vector<std::vector<StepRecord>>;  // by group

bool has_steps(const GroupSteps& steps);

/// The training loss by step; each point is the mean over a bin of neighbouring steps with a loss.
Series loss_by_step(std::string name, std::span<const StepRecord> steps, std::size_t bins);

/// Samples per second of a group in `bins` equal intervals of 0 to `seconds`; NaN after the last
/// step.
Series speed_over_time(std::string name, std::span<const StepRecord> steps, double seconds,
                       std::size_t bins);

/// Median, minimum and maximum over the series; at each x, over the series whose range includes x.
struct Spread {
    Series median;
    Band band;
};

Spread spread_of(const std::vector<Series>& series, std::size_t points);

/// Adds `series` to `plot`: up to eight as lines, more than eight as their spread at `points`
/// values of x.
void add_series(std::vector<Series> series, std::size_t points, LinePlot& plot);

/// Centred moving means over about a twelfth of the points of each series, over fewer at its ends.
std::vector<Series> smoothed(std::vector<Series> series);

/// The phases of a step: names, and seconds in one step, in the same order.
const std::vector<std::string>& phase_names();
std::vector<double> phase_seconds(const PhaseSeconds& phases);

/// The sum of each phase's seconds over `steps`; NaN if no step measured the phase.
std::vector<double> phase_totals(std::span<const StepRecord> steps);

/// Mean seconds of each phase in bins of neighbouring steps, [phase][bin], and the middle step of
/// each bin. A missing phase counts as 0.
struct PhaseBins {
    std::vector<double> step;
    std::vector<std::vector<double>> seconds;
};
PhaseBins phase_bins(std::span<const StepRecord> steps, std::size_t bins);

}  // namespace hpcai::report
