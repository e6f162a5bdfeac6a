// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/report/plots.hpp>

#include "log_chart.hpp"

namespace hpcai::report {
namespace {

constexpr int kColorCount = 6;

/// From the power of ten below the least to the one above the greatest of what was seen.
class Extent {
public:
    void see(double value) {
        lowest_ = std::min(lowest_, value);
        highest_ = std::max(highest_, value);
    }
    bool is_empty() const { return lowest_ > highest_; }
    LogAxis axis(std::string label, std::string unit) const {
        const double low = std::pow(10, std::floor(std::log10(lowest_)));
        const double high = std::pow(10, std::ceil(std::log10(highest_)));
        return {std::move(label), std::move(unit), low, high > low ? high : 10 * low};
    }

private:
    double lowest_ = std::numeric_limits<double>::infinity();
    double highest_ = 0;
};

bool can_be_drawn(const PlottedOperation& one) {
    return one.flops > 0 && one.bytes > 0 && one.seconds > 0;
}

/// Kinds by the time that they take, the longest first; what is beyond the colors is "other".
std::vector<std::string> kinds_of(const std::vector<PlottedOperation>& operations) {
    std::vector<std::pair<double, std::string>> kinds;
    for (const PlottedOperation& one : operations) {
        if (!can_be_drawn(one)) continue;
        const auto known =
            std::ranges::find(kinds, one.kind, &std::pair<double, std::string>::second);
        if (known == kinds.end()) {
            kinds.emplace_back(one.seconds, one.kind);
        } else {
            known->first += one.seconds;
        }
    }
    std::ranges::stable_sort(kinds, std::ranges::greater{}, &std::pair<double, std::string>::first);
    std::vector<std::string> names;
    for (const auto& [seconds, name] : kinds) {
        if (names.size() + 1 == kColorCount && kinds.size() > kColorCount) {
            names.emplace_back("other");
            break;
        }
        names.push_back(name);
    }
    return names;
}

void draw_ceilings(LogChart& chart, const RooflinePlot& plot, const LogAxis& x) {
    for (const PlottedCeiling& ceiling : plot.ceilings) {
        std::vector<std::pair<double, double>> points{{x.lowest, ceiling.flops_per_second},
                                                      {x.highest, ceiling.flops_per_second}};
        if (plot.memory_bytes_per_second.value) {
            points.front().first =
                std::clamp(ceiling.flops_per_second / *plot.memory_bytes_per_second.value, x.lowest,
                           x.highest);
        }
        chart.line(points, {.color = kColorCount - 1, .is_dashed = true});
        chart.label(
            x.highest, ceiling.flops_per_second,
            fmt::format("{} {}", ceiling.name, format_flops_human(ceiling.flops_per_second)), true);
    }
}

void draw_memory(LogChart& chart, const RooflinePlot& plot, const LogAxis& x, const LogAxis& y) {
    if (!plot.memory_bytes_per_second.value) return;
    const double rate = *plot.memory_bytes_per_second.value;
    double top = plot.ceilings.empty() ? y.highest : 0;
    for (const PlottedCeiling& one : plot.ceilings) top = std::max(top, one.flops_per_second);
    const double start = std::max(x.lowest, y.lowest / rate);
    chart.line({{start, start * rate}, {std::min(x.highest, top / rate), top}},
               {.color = kColorCount - 1, .is_dashed = true});
    chart.label(start, start * rate, fmt::format("  memory {}", format_si(rate, "B/s")), false);
}

}  // namespace

std::string roofline_svg(const RooflinePlot& plot) {
    Extent across, upward;
    double longest = 0;
    for (const PlottedOperation& one : plot.operations) {
        if (!can_be_drawn(one)) continue;
        across.see(one.flops / one.bytes);
        upward.see(one.flops / one.seconds);
        longest = std::max(longest, one.seconds);
    }
    require(!across.is_empty(), ExitCode::data,
            "roofline plot: expected operations with FLOPs, bytes and times, got none");
    for (const PlottedCeiling& one : plot.ceilings) upward.see(one.flops_per_second);
    const LogAxis x = across.axis("FLOPs a byte that must move", ""),
                  y = upward.axis("speed in the step", "FLOPS");
    LogChart chart(plot.title, x, y);
    draw_memory(chart, plot, x, y);
    draw_ceilings(chart, plot, x);
    const std::vector<std::string> kinds = kinds_of(plot.operations);
    for (const PlottedOperation& one : plot.operations) {
        if (!can_be_drawn(one)) continue;
        const auto kind = std::ranges::find(kinds, one.kind);
        const auto color = std::min<std::ptrdiff_t>(kind - kinds.begin(), kColorCount - 1);
        const double speed = one.flops / one.seconds;
        chart.dot(one.flops / one.bytes, speed, 2 + 8 * std::sqrt(one.seconds / longest),
                  static_cast<int>(color),
                  fmt::format("{} {}: {}, {:.3g} FLOP/B, {}", one.name, one.pass,
                              format_flops_human(speed), one.flops / one.bytes,
                              format_seconds(one.seconds)));
    }
    chart.legend(kinds);
    return chart.svg();
}

std::string sweep_svg(const SweepRecord& sweep) {
    Extent across, upward;
    std::vector<std::pair<double, double>> bagging, one_model;
    const auto add = [&](std::vector<std::pair<double, double>>& line, int ranks,
                         const Quantity& flops) {
        if (!flops.value) return;
        line.emplace_back(ranks, *flops.value);
        across.see(ranks);
        upward.see(*flops.value);
    };
    for (const SweepPoint& point : sweep.points) {
        add(bagging, point.ranks, point.bagging_flops);
        add(one_model, point.ranks, point.data_parallel_flops);
    }
    require(!across.is_empty(), ExitCode::data, "sweep plot: expected a speed, got none");
    LogChart chart(fmt::format("Predicted, not run: {}, {} samples a rank", sweep.model,
                               sweep.samples_per_rank),
                   across.axis("ranks", ""), upward.axis("speed", "FLOPS"));
    chart.line(bagging, {.color = 0});
    chart.line(one_model, {.color = 1});
    for (const SweepPoint& point : sweep.points) {
        const auto dot = [&](const Quantity& flops, const Quantity& efficiency, int color) {
            if (!flops.value) return;
            chart.dot(
                point.ranks, *flops.value, 3.5, color,
                fmt::format("{} ranks: {}, efficiency {}", point.ranks,
                            format_flops_human(*flops.value),
                            efficiency.value ? format_percent(*efficiency.value) : "unknown"));
        };
        dot(point.bagging_flops, point.bagging_efficiency, 0);
        dot(point.data_parallel_flops, point.data_parallel_efficiency, 1);
    }
    chart.legend(
        {fmt::format("bagging, base models of {} ranks", sweep.degree), "one data-parallel model"});
    return chart.svg();
}

}  // namespace hpcai::report
