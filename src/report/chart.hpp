// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>

#include <hpcai/records/step_record.hpp>

#include "markup.hpp"

/// Plots as HTML with inline SVG, and the averages of steps that they show. Lines scale with the
/// page; text keeps its size.
namespace hpcai::report {

struct Point {
    double x = 0;
    double y = 0;
};

/// A line, interrupted at points that are not finite.
struct Series {
    std::string name;
    std::vector<Point> points;
};

/// The area between two curves over the same x.
struct Band {
    std::string name;
    std::vector<double> x, low, high;
};

/// Texts and number formats of a plot, whose y axis includes 0.
struct PlotTexts {
    using Format = std::function<std::string(double)>;

    std::string title;
    std::string description;  // for screen readers
    std::string x_name;
    double x_min_step = 1;  // smallest distance of ticks; 1 for counts
    Format x_format = [](double x) { return format_count(std::llround(x)); };
    Format y_format = [](double y) { return fmt::format("{:.4g}", y); };
};

struct LinePlot : PlotTexts {
    std::vector<Band> bands = {};
    std::vector<Series> series = {};
    std::vector<Series> raw = {};   // not smoothed: drawn light, styled as series[i]; no legend
    std::vector<Series> dots = {};  // drawn over all lines; a non-finite point follows each dot
};

/// A figure with a legend. Empty if there is no finite point.
Markup line_plot(const LinePlot& plot);

/// Stacked areas; `layers[k]` has the height of layer k at each `x`.
struct StackPlot : PlotTexts {
    std::vector<std::string> names;
    std::vector<double> x;
    std::vector<std::vector<double>> layers;
};

Markup stack_plot(const StackPlot& plot);

/// A horizontal bar of `shares`, whose sum is 1, for a table cell.
Markup share_bar(const std::vector<double>& shares, const std::string& description);

/// The legend of a stack plot and of share bars; empty names are omitted.
Markup stack_legend(const std::vector<std::string>& names);

/// About `count` round numbers for an axis, at least `min_step` apart; the first is at most `low`,
/// the last at least `high`.
std::vector<double> ticks(double low, double high, int count, double min_step = 0);

using GroupSteps = std::vector<std::vector<StepRecord>>;  // by group

bool has_steps(const GroupSteps& steps);

/// The training loss by step; each point is the mean over a bin of neighbouring steps with a loss.
Series loss_by_step(std::string name, std::span<const StepRecord> steps, std::size_t bins);

/// Samples per second of a group in `bins` equal intervals of 0 to `seconds`; NaN for an interval
/// of which training takes at most a tenth.
Series speed_over_time(std::string name, std::span<const StepRecord> steps, double seconds,
                       std::size_t bins);

/// Median, and minimum to maximum, of several series at evenly spaced x; each number is over the
/// series whose range includes x.
struct Spread {
    Series median;
    Band band;
};

Spread spread_of(const std::vector<Series>& series, std::size_t points);

/// Adds `series` to `plot`: up to eight as lines, more as their spread_of().
void add_series(std::vector<Series> series, std::size_t points, LinePlot& plot);

/// Centred moving means over about a twelfth of the points of each series, over fewer at its ends.
std::vector<Series> smoothed(std::vector<Series> series);

/// The names of a step's phases, in the order of the functions below.
const std::vector<std::string>& phase_names();

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
