// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "markup.hpp"

/// Plots as HTML with inline SVG: lines scale with the page, text keeps its size.
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

using Format = std::function<std::string(double)>;

/// count_label(): an integer with separated thousands; short_label(): four significant digits.
std::string count_label(double value);
std::string short_label(double value);

/// Texts and number formats of a plot.
struct PlotTexts {
    std::string title;
    std::string description;  // for screen readers
    std::string x_name;
    Format x_format = count_label, y_format = short_label;
};

struct LinePlot : PlotTexts {
    bool from_zero = true;  // the y axis includes 0
    std::vector<Band> bands = {};
    std::vector<Series> series = {};
    std::vector<Series> raw = {};  // drawn light below the series of the same index; no legend
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

/// Values on a common scale, for a table cell.
struct DotPlot {
    std::vector<double> dots;
    std::vector<double> interval = {};  // empty, or low and high
    double target = 0;
    double low = 0, high = 1;  // ends of the scale
    std::string description;
};

Markup dot_plot(const DotPlot& plot);

/// About `count` round numbers for an axis; the first is at most `low`, the last at least `high`.
std::vector<double> ticks(double low, double high, int count);

}  // namespace hpcai::report
