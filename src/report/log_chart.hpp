// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hpcai::report {

/// Numbers along one side of a chart.
struct LogAxis {
    std::string label;
    std::string unit;  // of the marks
    double lowest = 1;
    double highest = 10;
};

/// A chart with two logarithmic axes, drawn in this order. Colors are numbers from 0 to 5, which
/// the reader's page, light or dark, makes.
class LogChart {
public:
    LogChart(std::string title, LogAxis x, LogAxis y);

    struct Style {
        int color = 0;
        bool is_dashed = false;
    };
    void line(const std::vector<std::pair<double, double>>& points, const Style& style);
    /// `hint` is what a pointer on the dot shows.
    void dot(double x, double y, double radius, int color, const std::string& hint);
    /// Beside a point, to its left where `ends` there.
    void label(double x, double y, const std::string& text, bool ends);
    void legend(const std::vector<std::string>& names);  // of the colors from 0 on

    /// The whole drawing.
    std::string svg() const;

    static constexpr double kWidth = 760;
    static constexpr double kHeight = 460;

private:
    double place_x(double value) const;
    double place_y(double value) const;
    std::string grid() const;

    std::string title_;
    LogAxis x_, y_;
    std::string body_;
};

}  // namespace hpcai::report
