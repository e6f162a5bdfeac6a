// SPDX-License-Identifier: Apache-2.0
#include "chart.hpp"

namespace hpcai::report {
namespace {

constexpr int kStyles = 8;  // styles s0 to s7 of lines; areas, at most six, have p0 to p5
constexpr double kPlotWidth = 1000, kPlotHeight = 400;
constexpr double kMaxDrawn = 1e300;  // so that differences of drawn values are finite

/// The visible ranges of x and y, and the axes' ticks.
struct Frame {
    std::vector<double> x_ticks, y_ticks;
    double x_low = 0, x_high = 1, y_low = 0, y_high = 1;

    double x_share(double x) const { return (x - x_low) / (x_high - x_low); }
    double y_share(double y) const { return (y - y_low) / (y_high - y_low); }
    std::string position(double x, double y) const {
        return fmt::format("{:.1f} {:.1f}", kPlotWidth * x_share(x),
                           kPlotHeight * (1 - y_share(y)));
    }
};

/// The range of the values that can be drawn.
struct Range {
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();

    void add(double value) {
        if (!(std::abs(value) < kMaxDrawn)) return;
        low = std::min(low, value);
        high = std::max(high, value);
    }
    bool is_empty() const { return low > high; }
};

Frame frame_of(const PlotTexts& texts, const Range& x, Range y) {
    Frame frame;
    y.add(0);
    frame.y_ticks = ticks(y.low, y.high, 4);
    frame.y_low = frame.y_ticks.front();
    frame.y_high = frame.y_ticks.back();
    frame.x_low = x.low;
    frame.x_high = x.high > x.low ? x.high : x.low + 1;
    for (const double tick : ticks(frame.x_low, frame.x_high, 6, texts.x_min_step)) {
        const double share = frame.x_share(tick);
        if (share >= -1e-9 && share <= 1 + 1e-9) frame.x_ticks.push_back(tick);
    }
    return frame;
}

/// The CSS class of a tick's label. It keeps labels at both ends of the axis inside the figure.
std::string label_class(double share) {
    return share < 0.02 ? "first" : share > 0.95 ? "last" : "";
}

Markup grid(const Frame& frame) {
    std::string path;
    for (const double tick : frame.y_ticks) {
        path += fmt::format("M{}H{}", frame.position(frame.x_low, tick), kPlotWidth);
    }
    return Markup{fmt::format(R"(<path class="grid" d="{}"/>)", path)};
}

/// A figure with `content` inside the axes.
Markup figure(const Frame& frame, const PlotTexts& texts, const Markup& content,
              const Markup& legend) {
    Markup y_labels, x_labels;
    for (const double tick : frame.y_ticks) {
        y_labels +=
            element(fmt::format(R"(span style="bottom:{:.2f}%")", 100 * frame.y_share(tick)),
                    {text(texts.y_format(tick))});
    }
    for (const double tick : frame.x_ticks) {
        const double share = frame.x_share(tick);
        x_labels += element(
            fmt::format(R"(span class="{}" style="left:{:.2f}%")", label_class(share), 100 * share),
            {text(texts.x_format(tick))});
    }
    const Markup svg =
        element(fmt::format(R"(svg viewBox="0 0 {} {}" preserveAspectRatio="none" role="img")",
                            kPlotWidth, kPlotHeight),
                {element("title", {text(texts.title)}), element("desc", {text(texts.description)}),
                 grid(frame), content});
    return element("figure", {element("figcaption", {text(texts.title)}), legend,
                              element(R"(div class="plot")",
                                      {element(R"(div class="y" aria-hidden="true")", {y_labels}),
                                       element(R"(div class="area")", {svg}),
                                       element(R"(div class="x" aria-hidden="true")", {x_labels})}),
                              element(R"(div class="axis")", {text(texts.x_name)})});
}

std::string line_path(const Frame& frame, const std::vector<Point>& points) {
    std::string path;
    std::size_t connected = 0;  // points since the last interruption
    const auto end_part = [&] {
        if (connected == 1) path += "h0";  // makes a single point visible
        connected = 0;
    };
    for (const Point& point : points) {
        const bool is_drawn = std::abs(point.x) < kMaxDrawn && std::abs(point.y) < kMaxDrawn;
        if (!is_drawn) {
            end_part();
            continue;
        }
        path += (connected++ > 0 ? "L" : "M") + frame.position(point.x, point.y);
    }
    end_part();
    return path;
}

void draw_lines(const Frame& frame, const std::vector<Series>& lines, const char* name,
                Markup& drawn) {
    for (std::size_t index = 0; index < lines.size(); ++index) {
        drawn += Markup{fmt::format(R"(<path class="{} s{}" d="{}"/>)", name, index % kStyles,
                                    line_path(frame, lines[index].points))};
    }
}

std::string band_path(const Frame& frame, const Band& band) {
    std::string upper, lower;
    for (std::size_t index = 0; index < band.x.size(); ++index) {
        if (!(std::abs(band.low[index]) < kMaxDrawn && std::abs(band.high[index]) < kMaxDrawn)) {
            continue;
        }
        upper += (upper.empty() ? "M" : "L") + frame.position(band.x[index], band.high[index]);
        lower = "L" + frame.position(band.x[index], band.low[index]) + lower;
    }
    return upper + lower + "Z";
}

Markup legend_entry(const Markup& sample, const std::string& name) {
    return element(
        "li",
        {element(R"(svg viewBox="0 0 28 10" width="28" height="10" aria-hidden="true")", {sample}),
         text(name)});
}

Markup legend(const LinePlot& plot) {
    Markup entries;
    for (const Band& band : plot.bands) {
        entries +=
            legend_entry(Markup{R"(<rect class="band" width="28" height="10"/>)"}, band.name);
    }
    for (std::size_t index = 0; index < plot.series.size(); ++index) {
        entries += legend_entry(
            Markup{fmt::format(R"(<path class="line s{}" d="M0 5H28"/>)", index % kStyles)},
            plot.series[index].name);
    }
    for (std::size_t index = 0; index < plot.dots.size(); ++index) {
        entries += legend_entry(
            Markup{fmt::format(R"(<path class="dot s{}" d="M14 5h0"/>)", index % kStyles)},
            plot.dots[index].name);
    }
    return element(R"(ul class="legend")", {entries});
}

}  // namespace

std::vector<double> ticks(double low, double high, int count, double min_step) {
    if (!(high > low)) high = low + std::max(1.0, std::abs(low) * 0.1);
    const double rough = std::max((high - low) / count, min_step);
    const double power = std::pow(10, std::floor(std::log10(rough)));
    const double step = rough > 5 * power   ? 10 * power
                        : rough > 2 * power ? 5 * power
                        : rough > power     ? 2 * power
                                            : power;
    std::vector<double> found;
    const double first = std::floor(low / step + 1e-9);
    const double last = std::ceil(high / step - 1e-9);
    for (double index = first; index <= last && found.size() < 100; ++index) {
        found.push_back(index * step);
    }
    // If the ends differ only in their last digits, rounding makes the ticks equal.
    const double margin = std::max(1.0, std::abs(low));
    return found.size() > 1 && found.back() > found.front()
               ? found
               : std::vector<double>{low - margin, low + margin};
}

Markup line_plot(const LinePlot& plot) {
    Range x, y;
    for (const Band& band : plot.bands) {
        for (const double value : band.x) x.add(value);
        for (const double value : band.low) y.add(value);
        for (const double value : band.high) y.add(value);
    }
    for (const auto* lines : {&plot.raw, &plot.series, &plot.dots}) {
        for (const Series& series : *lines) {
            for (const Point& point : series.points) {
                x.add(point.x);
                y.add(point.y);
            }
        }
    }
    if (x.is_empty() || y.is_empty()) return {};
    const Frame frame = frame_of(plot, x, y);
    Markup drawn;
    for (const Band& band : plot.bands) {
        drawn += Markup{fmt::format(R"(<path class="band" d="{}"/>)", band_path(frame, band))};
    }
    draw_lines(frame, plot.raw, "raw", drawn);
    draw_lines(frame, plot.series, "line", drawn);
    draw_lines(frame, plot.dots, "dot", drawn);
    return figure(frame, plot, drawn, legend(plot));
}

Markup stack_plot(const StackPlot& plot) {
    Range x, y;
    for (const double value : plot.x) x.add(value);
    std::vector<double> sums(plot.x.size(), 0.0);
    for (const std::vector<double>& layer : plot.layers) {
        for (std::size_t index = 0; index < sums.size(); ++index) sums[index] += layer[index];
    }
    for (const double value : sums) y.add(value);
    if (x.is_empty() || y.is_empty()) return {};
    const Frame frame = frame_of(plot, x, y);
    Markup drawn;
    std::vector<double> below(plot.x.size(), 0.0);
    for (std::size_t layer = 0; layer < plot.layers.size(); ++layer) {
        Band band{"", plot.x, below, below};
        for (std::size_t index = 0; index < below.size(); ++index) {
            band.high[index] += plot.layers[layer][index];
        }
        drawn += Markup{
            fmt::format(R"(<path class="p{}" d="{}"/>)", layer % kStyles, band_path(frame, band))};
        below = band.high;
    }
    return figure(frame, plot, drawn, stack_legend(plot.names));
}

Markup share_bar(const std::vector<double>& shares, const std::string& description) {
    Markup drawn = element("title", {text(description)});
    double left = 0;
    for (std::size_t index = 0; index < shares.size(); ++index) {
        const double width = std::isfinite(shares[index]) ? std::clamp(shares[index], 0.0, 1.0) : 0;
        if (width > 0) {
            drawn +=
                Markup{fmt::format(R"(<rect class="p{}" x="{:.1f}" width="{:.1f}" height="10"/>)",
                                   index % kStyles, 1000 * left, 1000 * width)};
        }
        left += width;
    }
    return element(R"(svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" role="img")",
                   {drawn});
}

Markup stack_legend(const std::vector<std::string>& names) {
    Markup entries;
    for (std::size_t index = 0; index < names.size(); ++index) {
        if (names[index].empty()) continue;
        entries += legend_entry(
            Markup{fmt::format(R"(<rect class="p{}" width="28" height="10"/>)", index % kStyles)},
            names[index]);
    }
    return element(R"(ul class="legend")", {entries});
}

}  // namespace hpcai::report
