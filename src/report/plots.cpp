// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/report/plots.hpp>

namespace hpcai::report {
namespace {

constexpr int kColorCount = 6;                                       // --c0 to --c5 in kColorStyle
constexpr double kWidth = 760, kHeight = 460;                        // pixels, as all lengths below
constexpr double kLeft = 116, kRight = 40, kTop = 44, kBottom = 84;  // margins around the axes
constexpr const char* kColorStyle =
    "<style>.chart{--c0:#1f5fbf;--c1:#c2410c;--c2:#15803d;--c3:#7e22ce;--c4:#a16207;--c5:#be123c;"
    "--ink:#1f2937;--faint:#d1d5db;--page:#ffffff}"
    "@media (prefers-color-scheme:dark){.chart{--c0:#7db4ff;--c1:#fb923c;--c2:#4ade80;--c3:#d8b4fe;"
    "--c4:#facc15;--c5:#fb7185;--ink:#e5e7eb;--faint:#374151;--page:#111827}}"
    ".chart text{font:12px system-ui,sans-serif;fill:var(--ink)}"
    ".chart .title{font-size:15px;font-weight:600}</style>";

/// A logarithmic axis. It spans the added values, and after round() the powers of ten around them.
struct LogAxis {
    std::string label;
    std::string unit;  // of the tick labels
    double lowest = std::numeric_limits<double>::infinity();
    double highest = 0;

    void add(double value) {
        lowest = std::min(lowest, value);
        highest = std::max(highest, value);
    }
    bool is_empty() const { return lowest > highest; }
    void round() {
        lowest = std::pow(10, std::floor(std::log10(lowest)));
        highest = std::max(std::pow(10, std::ceil(std::log10(highest))), 10 * lowest);
    }

    /// Returns the place of `value` on the axis, from 0 to 1.
    double share(double value) const {
        return std::clamp(std::log(value / lowest) / std::log(highest / lowest), 0.0, 1.0);
    }
    std::vector<double> ticks() const {
        std::vector<double> powers;
        double power = std::ceil(std::log10(lowest) - 1e-9);
        for (; std::pow(10, power) <= highest * 1.0001; ++power)
            powers.push_back(std::pow(10, power));
        return powers;
    }
};

std::string tick_text(double value, const std::string& unit) {
    if (!unit.empty()) return format_si(value, unit);
    return value >= 1 && value < 1e7 ? fmt::format("{:.0f}", value) : fmt::format("{:g}", value);
}

/// A chart with two logarithmic axes; later elements cover earlier ones. Colors are numbers below
/// kColorCount, each with one shade for light and one for dark pages.
class LogChart {
public:
    LogChart(std::string title, LogAxis x, LogAxis y)
        : title_(std::move(title)), x_(std::move(x)), y_(std::move(y)) {}

    struct Style {
        int color = 0;
        bool is_dashed = false;
    };
    void line(const std::vector<std::pair<double, double>>& points, const Style& style) {
        if (points.empty()) return;
        std::string path;
        for (const auto& [x, y] : points) {
            path += fmt::format(" {:.1f},{:.1f}", place_x(x), place_y(y));
        }
        body_ += fmt::format(
            "<polyline fill=\"none\" stroke=\"var(--c{})\" stroke-width=\"2\"{} points=\"{}\"/>\n",
            style.color, style.is_dashed ? " stroke-dasharray=\"6 4\"" : "", path.substr(1));
    }
    /// `hint` is the tooltip of the dot.
    void dot(double x, double y, double radius, int color, const std::string& hint) {
        body_ += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"var(--c{})\" "
            "fill-opacity=\"0.55\" stroke=\"var(--c{})\"><title>{}</title></circle>\n",
            place_x(x), place_y(y), radius, color, color, escape_html(hint));
    }
    /// Writes a text that starts at the point or, if `ends`, ends there.
    void label(double x, double y, const std::string& text, bool ends) {
        body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", place_x(x),
                             place_y(y) - 6, ends ? " text-anchor=\"end\"" : "", escape_html(text));
    }
    /// Explains colors 0, 1, ...
    void legend(const std::vector<std::string>& names) {
        double x = kLeft;
        for (std::size_t color = 0; color < names.size(); ++color) {
            body_ += fmt::format(
                "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"10\" height=\"10\" fill=\"var(--c{})\"/>"
                "<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n",
                x, kHeight - 20, color, x + 15, kHeight - 11, escape_html(names[color]));
            constexpr double kLetterWidth = 6.6;  // pixels, about
            x += 34 + kLetterWidth * static_cast<double>(names[color].size());
        }
    }

    std::string svg() const {
        const double middle = kTop + (kHeight - kTop - kBottom) / 2;
        return fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {0} {1}\" "
            "role=\"img\">\n{2}<rect width=\"{0}\" height=\"{1}\" fill=\"var(--page)\"/>\n"
            "<text class=\"title\" x=\"{3}\" y=\"24\">{4}</text>\n{5}"
            "<text x=\"{6:.0f}\" y=\"{7}\" text-anchor=\"middle\">{8}</text>\n"
            "<text transform=\"translate(16 {9:.0f}) rotate(-90)\" "
            "text-anchor=\"middle\">{10}</text>\n{11}</svg>\n",
            kWidth, kHeight, kColorStyle, kLeft, escape_html(title_), grid(),
            kLeft + (kWidth - kLeft - kRight) / 2, kHeight - kBottom + 40, escape_html(x_.label),
            middle, escape_html(y_.label), body_);
    }

private:
    double place_x(double value) const {
        return kLeft + x_.share(value) * (kWidth - kLeft - kRight);
    }
    double place_y(double value) const {
        return kHeight - kBottom - y_.share(value) * (kHeight - kTop - kBottom);
    }
    std::string grid() const {
        std::string text;
        for (const double tick : x_.ticks()) {
            text += fmt::format(
                "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" "
                "stroke=\"var(--faint)\"/><text x=\"{0:.1f}\" y=\"{3}\" "
                "text-anchor=\"middle\">{4}</text>\n",
                place_x(tick), kTop, kHeight - kBottom, kHeight - kBottom + 17,
                tick_text(tick, x_.unit));
        }
        for (const double tick : y_.ticks()) {
            text += fmt::format(
                "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" "
                "stroke=\"var(--faint)\"/><text x=\"{3}\" y=\"{4:.1f}\" "
                "text-anchor=\"end\">{5}</text>\n",
                kLeft, kWidth - kRight, place_y(tick), kLeft - 8, place_y(tick) + 4,
                tick_text(tick, y_.unit));
        }
        return text;
    }

    std::string title_;
    LogAxis x_, y_;
    std::string body_;
};

bool is_drawable(const PlottedOperation& operation) {
    return operation.flops > 0 && operation.bytes > 0 && operation.seconds > 0;
}

/// Kinds by decreasing time; if there are more than kColorCount, the last is "other", for the rest.
std::vector<std::string> kinds_of(const std::vector<PlottedOperation>& operations) {
    std::vector<std::pair<double, std::string>> kinds;
    for (const PlottedOperation& operation : operations) {
        if (!is_drawable(operation)) continue;
        const auto known =
            std::ranges::find(kinds, operation.kind, &std::pair<double, std::string>::second);
        if (known == kinds.end()) {
            kinds.emplace_back(operation.seconds, operation.kind);
        } else {
            known->first += operation.seconds;
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
            fmt::format("{} {}", ceiling.name, format_si(ceiling.flops_per_second, "FLOPS")), true);
    }
}

void draw_memory(LogChart& chart, const RooflinePlot& plot, const LogAxis& x, const LogAxis& y) {
    if (!plot.memory_bytes_per_second.value) return;
    const double rate = *plot.memory_bytes_per_second.value;
    double top = plot.ceilings.empty() ? y.highest : 0;
    for (const PlottedCeiling& ceiling : plot.ceilings)
        top = std::max(top, ceiling.flops_per_second);
    const double start = std::max(x.lowest, y.lowest / rate);
    const double end = std::min(x.highest, top / rate);
    chart.line({{start, start * rate}, {end, end * rate}},
               {.color = kColorCount - 1, .is_dashed = true});
    chart.label(start, start * rate, fmt::format("  memory {}", format_si(rate, "B/s")), false);
}

}  // namespace

std::string roofline_svg(const RooflinePlot& plot) {
    LogAxis x{"FLOPs per byte moved", ""}, y{"speed in the step", "FLOPS"};
    double longest = 0;
    for (const PlottedOperation& operation : plot.operations) {
        if (!is_drawable(operation)) continue;
        x.add(operation.flops / operation.bytes);
        y.add(operation.flops / operation.seconds);
        longest = std::max(longest, operation.seconds);
    }
    require(!x.is_empty(), ExitCode::data,
            "roofline plot: expected operations with FLOPs, bytes and times, got none");
    for (const PlottedCeiling& ceiling : plot.ceilings) y.add(ceiling.flops_per_second);
    x.round();
    y.round();
    LogChart chart(plot.title, x, y);
    draw_memory(chart, plot, x, y);
    draw_ceilings(chart, plot, x);
    const std::vector<std::string> kinds = kinds_of(plot.operations);
    for (const PlottedOperation& operation : plot.operations) {
        if (!is_drawable(operation)) continue;
        const auto kind = std::ranges::find(kinds, operation.kind);
        const auto color = std::min<std::ptrdiff_t>(kind - kinds.begin(), kColorCount - 1);
        const double speed = operation.flops / operation.seconds;
        chart.dot(operation.flops / operation.bytes, speed,
                  2 + 8 * std::sqrt(operation.seconds / longest), static_cast<int>(color),
                  fmt::format("{} {}: {}, {:.3g} FLOP/B, {}", operation.name, operation.pass,
                              format_si(speed, "FLOPS"), operation.flops / operation.bytes,
                              format_seconds(operation.seconds)));
    }
    chart.legend(kinds);
    return chart.svg();
}

std::string sweep_svg(const SweepRecord& sweep) {
    LogAxis x{"ranks", ""}, y{"speed", "FLOPS"};
    std::vector<std::pair<double, double>> bagging, one_model;
    const auto add = [&](std::vector<std::pair<double, double>>& line, int ranks,
                         const Quantity& flops) {
        if (!flops.value) return;
        line.emplace_back(ranks, *flops.value);
        x.add(ranks);
        y.add(*flops.value);
    };
    for (const SweepPoint& point : sweep.points) {
        add(bagging, point.ranks, point.bagging_flops);
        add(one_model, point.ranks, point.data_parallel_flops);
    }
    require(!x.is_empty(), ExitCode::data, "sweep plot: expected a speed, got none");
    x.round();
    y.round();
    LogChart chart(fmt::format("Predicted, not measured: {}, {} per rank", sweep.model,
                               counted(sweep.samples_per_rank, "sample")),
                   x, y);
    chart.line(bagging, {.color = 0});
    chart.line(one_model, {.color = 1});
    for (const SweepPoint& point : sweep.points) {
        const auto dot = [&](const Quantity& flops, const Quantity& efficiency, int color) {
            if (!flops.value) return;
            chart.dot(
                point.ranks, *flops.value, 3.5, color,
                fmt::format("{}: {}, efficiency {}", counted(point.ranks, "rank"),
                            format_si(*flops.value, "FLOPS"),
                            efficiency.value ? format_percent(*efficiency.value) : "unknown"));
        };
        dot(point.bagging_flops, point.bagging_efficiency, 0);
        dot(point.data_parallel_flops, point.data_parallel_efficiency, 1);
    }
    chart.legend({fmt::format("bagging, base models of {}", counted(sweep.degree, "rank")),
                  "one data-parallel model"});
    return chart.svg();
}

}  // namespace hpcai::report
