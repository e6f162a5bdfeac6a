// SPDX-License-Identifier: Apache-2.0
#include "log_chart.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>

namespace hpcai::report {
namespace {

constexpr double kLeft = 116, kRight = 40, kTop = 44, kBottom = 84;
constexpr const char* kColorRules =
    "<style>.chart{--c0:#1f5fbf;--c1:#c2410c;--c2:#15803d;--c3:#7e22ce;--c4:#a16207;--c5:#be123c;"
    "--ink:#1f2937;--faint:#d1d5db;--page:#ffffff}"
    "@media (prefers-color-scheme:dark){.chart{--c0:#7db4ff;--c1:#fb923c;--c2:#4ade80;--c3:#d8b4fe;"
    "--c4:#facc15;--c5:#fb7185;--ink:#e5e7eb;--faint:#374151;--page:#111827}}"
    ".chart text{font:12px system-ui,sans-serif;fill:var(--ink)}"
    ".chart .title{font-size:15px;font-weight:600}</style>";

std::string mark_text(double value, const std::string& unit) {
    if (!unit.empty()) return format_si(value, unit);
    return value >= 1 && value < 1e7 ? fmt::format("{:.0f}", value) : fmt::format("{:g}", value);
}

}  // namespace

LogChart::LogChart(std::string title, LogAxis x, LogAxis y)
    : title_(std::move(title)), x_(std::move(x)), y_(std::move(y)) {}

double LogChart::place_x(double value) const {
    const double share = std::log(value / x_.lowest) / std::log(x_.highest / x_.lowest);
    return kLeft + std::clamp(share, 0.0, 1.0) * (kWidth - kLeft - kRight);
}

double LogChart::place_y(double value) const {
    const double share = std::log(value / y_.lowest) / std::log(y_.highest / y_.lowest);
    return kHeight - kBottom - std::clamp(share, 0.0, 1.0) * (kHeight - kTop - kBottom);
}

void LogChart::line(const std::vector<std::pair<double, double>>& points, const Style& style) {
    if (points.empty()) return;
    std::string path;
    for (const auto& [x, y] : points) path += fmt::format(" {:.1f},{:.1f}", place_x(x), place_y(y));
    body_ += fmt::format(
        "<polyline fill=\"none\" stroke=\"var(--c{})\" stroke-width=\"2\"{} points=\"{}\"/>\n",
        style.color, style.is_dashed ? " stroke-dasharray=\"6 4\"" : "", path.substr(1));
}

void LogChart::dot(double x, double y, double radius, int color, const std::string& hint) {
    body_ += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"var(--c{})\" "
        "fill-opacity=\"0.55\" "
        "stroke=\"var(--c{})\"><title>{}</title></circle>\n",
        place_x(x), place_y(y), radius, color, color, html_text(hint));
}

void LogChart::label(double x, double y, const std::string& text, bool ends) {
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", place_x(x),
                         place_y(y) - 6, ends ? " text-anchor=\"end\"" : "", html_text(text));
}

void LogChart::legend(const std::vector<std::string>& names) {
    double x = kLeft;
    for (std::size_t color = 0; color < names.size(); ++color) {
        body_ += fmt::format(
            "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"10\" height=\"10\" fill=\"var(--c{})\"/>"
            "<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n",
            x, kHeight - 20, color, x + 15, kHeight - 11, html_text(names[color]));
        constexpr double kLetter = 6.6;  // pixels, about
        x += 34 + kLetter * static_cast<double>(names[color].size());
    }
}

std::string LogChart::grid() const {
    std::string text;
    const auto first = [](double lowest) { return std::ceil(std::log10(lowest) - 1e-9); };
    for (double power = first(x_.lowest); std::pow(10, power) <= x_.highest * 1.0001; ++power) {
        const double at = place_x(std::pow(10, power));
        text += fmt::format(
            "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"var(--faint)\"/>"
            "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
            at, kTop, kHeight - kBottom, kHeight - kBottom + 17,
            mark_text(std::pow(10, power), x_.unit));
    }
    for (double power = first(y_.lowest); std::pow(10, power) <= y_.highest * 1.0001; ++power) {
        const double at = place_y(std::pow(10, power));
        text += fmt::format(
            "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"var(--faint)\"/>"
            "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
            kLeft, kWidth - kRight, at, kLeft - 8, at + 4, mark_text(std::pow(10, power), y_.unit));
    }
    return text;
}

std::string LogChart::svg() const {
    const double middle = kTop + (kHeight - kTop - kBottom) / 2;
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {0} {1}\" "
        "role=\"img\">\n{2}<rect width=\"{0}\" height=\"{1}\" fill=\"var(--page)\"/>\n"
        "<text class=\"title\" x=\"{3}\" y=\"24\">{4}</text>\n{5}"
        "<text x=\"{6:.0f}\" y=\"{7}\" text-anchor=\"middle\">{8}</text>\n"
        "<text transform=\"translate(16 {9:.0f}) rotate(-90)\" text-anchor=\"middle\">{10}</text>\n"
        "{11}</svg>\n",
        kWidth, kHeight, kColorRules, kLeft, html_text(title_), grid(),
        kLeft + (kWidth - kLeft - kRight) / 2, kHeight - kBottom + 40, html_text(x_.label), middle,
        html_text(y_.label), body_);
}

}  // namespace hpcai::report
