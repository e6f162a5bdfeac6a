// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <hpcai/base/median.hpp>

#include "chart.hpp"

namespace hpcai::report {
namespace {

/// Divides [0, count) into at most `bins` ranges of nearly equal size and calls work(first, end).
void for_each_bin(std::size_t count, std::size_t bins, auto&& work) {
    bins = std::min(bins, count);
    for (std::size_t bin = 0; bin < bins; ++bin) {
        work(bin * count / bins, (bin + 1) * count / bins);
    }
}

/// Returns the interpolated y of the series at `x`; NaN outside its range.
double value_at(const Series& series, double x) {
    const auto& points = series.points;
    const auto after = std::ranges::lower_bound(points, x, {}, &Point::x);
    if (after == points.end()) return PhaseSeconds::kUnknown;
    if (after == points.begin()) return after->x == x ? after->y : PhaseSeconds::kUnknown;
    const Point& left = *(after - 1);
    const double share = (x - left.x) / (after->x - left.x);
    return left.y + share * (after->y - left.y);
}

}  // namespace

bool has_steps(const GroupSteps& steps) {
    return std::ranges::any_of(steps, [](const auto& group) { return !group.empty(); });
}

Series loss_by_step(std::string name, std::span<const StepRecord> steps, std::size_t bins) {
    Series series{std::move(name), {}};
    std::vector<const StepRecord*> known;
    for (const StepRecord& step : steps) {
        if (std::isfinite(step.loss)) known.push_back(&step);
    }
    for_each_bin(known.size(), bins, [&](std::size_t first, std::size_t end) {
        Point sum;
        for (std::size_t index = first; index < end; ++index) {
            sum.x += static_cast<double>(known[index]->step + 1);
            sum.y += known[index]->loss;
        }
        const auto count = static_cast<double>(end - first);
        series.points.push_back({sum.x / count, sum.y / count});
    });
    return series;
}

Series speed_over_time(std::string name, std::span<const StepRecord> steps, double seconds,
                       std::size_t bins) {
    Series series{std::move(name), {}};
    if (steps.empty() || !(seconds > 0)) return series;
    const double width = seconds / static_cast<double>(bins);
    double before = 0, done = 0;  // samples before the interval, and of the steps that have ended
    std::size_t next = 0;         // the first step that has not ended
    for (std::size_t bin = 0; bin < bins; ++bin) {
        const double end = width * static_cast<double>(bin + 1);
        while (next < steps.size() && steps[next].end_seconds <= end)
            done += static_cast<double>(steps[next++].samples);
        double at_end = done;  // samples; assumes constant speed within a step
        if (next < steps.size()) {
            const double begin = next == 0 ? 0 : steps[next - 1].end_seconds;
            const double length = steps[next].end_seconds - begin;
            const double share = length > 0 ? std::clamp((end - begin) / length, 0.0, 1.0) : 0;
            at_end += share * static_cast<double>(steps[next].samples);
        }
        // The training of this group may end within an interval.
        const double busy_seconds = std::min(end, steps.back().end_seconds) - (end - width);
        const double middle = end - width / 2;
        const double samples = at_end - std::exchange(before, at_end);
        series.points.push_back(
            {middle, busy_seconds > 0.1 * width ? samples / busy_seconds : PhaseSeconds::kUnknown});
    }
    return series;
}

Spread spread_of(const std::vector<Series>& series, std::size_t points) {
    Spread spread{{"median of the groups", {}}, {"minimum to maximum", {}, {}, {}}};
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const Series& one : series) {
        if (one.points.empty()) continue;
        low = std::min(low, one.points.front().x);
        high = std::max(high, one.points.back().x);
    }
    if (low > high) return spread;
    for (std::size_t index = 0; index < points; ++index) {
        const double x =
            low + (high - low) * static_cast<double>(index) / static_cast<double>(points - 1);
        std::vector<double> values;
        for (const Series& one : series) {
            const double value = value_at(one, x);
            if (std::isfinite(value)) values.push_back(value);
        }
        if (values.empty()) continue;
        const auto [low_value, high_value] = std::ranges::minmax(values);
        spread.median.points.push_back({x, median(values)});
        spread.band.x.push_back(x);
        spread.band.low.push_back(low_value);
        spread.band.high.push_back(high_value);
    }
    return spread;
}

void add_series(std::vector<Series> series, std::size_t points, LinePlot& plot) {
    constexpr std::size_t kMaxLines = 8;
    if (series.size() <= kMaxLines) {
        plot.series = std::move(series);
        return;
    }
    Spread spread = spread_of(series, points);
    plot.bands = {std::move(spread.band)};
    plot.series = {std::move(spread.median)};
}

std::vector<Series> smoothed(std::vector<Series> series) {
    for (Series& one : series) {
        const std::vector<Point> raw = one.points;
        for (std::size_t index = 0; index < raw.size(); ++index) {
            const std::size_t reach = std::min({raw.size() / 24, index, raw.size() - 1 - index});
            double sum = 0;
            for (std::size_t at = index - reach; at <= index + reach; ++at) sum += raw[at].y;
            one.points[index].y = sum / static_cast<double>(2 * reach + 1);
        }
    }
    return series;
}

const std::vector<std::string>& phase_names() {
    static const std::vector<std::string> names{"input wait",    "forward",   "backward",
                                                "communication", "optimizer", "other"};
    return names;
}

std::vector<double> phase_totals(std::span<const StepRecord> steps) {
    std::vector<double> totals(phase_names().size(), PhaseSeconds::kUnknown);
    for (const StepRecord& step : steps) {
        const PhaseSeconds& phases = step.phases;
        const std::array seconds{phases.input_wait,    phases.forward,   phases.backward,
                                 phases.communication, phases.optimizer, phases.other};
        for (std::size_t phase = 0; phase < totals.size(); ++phase) {
            if (!std::isfinite(seconds[phase])) continue;
            totals[phase] = (std::isfinite(totals[phase]) ? totals[phase] : 0) + seconds[phase];
        }
    }
    return totals;
}

PhaseBins phase_bins(std::span<const StepRecord> steps, std::size_t bins) {
    PhaseBins result;
    result.seconds.resize(phase_names().size());
    for_each_bin(steps.size(), bins, [&](std::size_t first, std::size_t end) {
        const std::span<const StepRecord> bin = steps.subspan(first, end - first);
        const auto count = static_cast<double>(bin.size());
        const std::vector<double> totals = phase_totals(bin);
        for (std::size_t phase = 0; phase < totals.size(); ++phase) {
            const double known = std::isfinite(totals[phase]) ? totals[phase] : 0;
            result.seconds[phase].push_back(known / count);
        }
        result.step.push_back(static_cast<double>(bin.front().step + bin.back().step) / 2 + 1);
    });
    return result;
}

}  // namespace hpcai::report
