// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "markup.hpp"

/// Plots as HTML with inline SVG: lines scale with the page, letters keep their size.
namespace hpcai::report {

struct Point {
    double x = 0;
    double y = 0;
};

/// Points that are not finite break the line.
struct Series {
    std::string name;
    std::vector<Point> points;
};

/// An area between two curves over the same x.
struct Band {
    std::string name;
    std::vector<double> x, low, high;
};

using Format = std::function<std::string(double)>;

/// An integer with its thousands apart, and four digits.
std::string count_label(double value);
std::string short_label(double value);

/// What is written around a plot.
struct PlotTexts {
    std::string title;
    std::string description;  // for those who do not see it
    std::string x_name;
    Format x_format = count_label, y_format = short_label;
};

struct LinePlot : PlotTexts {
    bool from_zero = true;  // whether the y axis begins there
    std::vector<Band> bands = {};
    std::vector<Series> series = {};
};

/// A figure with a legend; nothing where there is no point to show.
Markup line_plot(const LinePlot& plot);

/// Areas one upon the other, `layers[k]` having the height of layer k at each of `x`.
struct StackPlot : PlotTexts {
    std::vector<std::string> names;
    std::vector<double> x;
    std::vector<std::vector<double>> layers;
};

Markup stack_plot(const StackPlot& plot);

/// One horizontal bar of `shares`, of which all add up to 1, for a cell of a table.
Markup share_bar(const std::vector<double>& shares, const std::string& description);

/// What the colours of a stack plot and of share bars mean; an empty name is left out.
Markup stack_legend(const std::vector<std::string>& names);

/// A value on a common scale, for a cell of a table.
struct Mark {
    std::vector<double> dots;
    std::vector<double> interval = {};  // empty, or low and high
    double target = 0;
    double low = 0, high = 1;  // ends of the scale
    std::string description;
};

Markup mark(const Mark& mark);

/// Round numbers from at most `low` to at least `high`, about `count` steps apart.
std::vector<double> ticks(double low, double high, int count);

}  // namespace hpcai::report
