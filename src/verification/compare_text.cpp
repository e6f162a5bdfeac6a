// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/verification/compare.hpp>

namespace hpcai::verification {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMaxLetters = 36;  // of a value

/// Returns where the shown part of two values begins: at 0, or shortly before they differ.
std::size_t shown_begin(const std::string& first, const std::string& second) {
    const auto same = std::ranges::mismatch(first, second).in1 - first.begin();
    const auto begin = static_cast<std::size_t>(std::max<std::ptrdiff_t>(same - 20, 0));
    return std::max(first.size(), second.size()) > kMaxLetters ? begin : 0;
}

std::string shown(const std::string& value, std::size_t begin) {
    if (value.empty()) return "(none)";
    return (begin > 0 ? "..." : "") + printable(value.substr(begin, kMaxLetters)) +
           (value.size() > begin + kMaxLetters ? "..." : "");
}

std::string number(const Quantity& quantity) {
    return quantity.value ? fmt::format("{:.5g}", *quantity.value) : "n/a";
}

std::string change(const MetricComparison& row) {
    if (!row.first.value || !row.second.value || *row.first.value == 0) return "";
    const double ratio = *row.second.value / *row.first.value;
    if (ratio < 0 || ratio >= 10) return fmt::format("x {:.3g}", ratio);
    return fmt::format("{:+.2f} %", 100 * (ratio - 1));
}

std::string table(std::string_view title, const std::vector<SettingDifference>& differences) {
    std::string text = fmt::format("{}{}\n", title, differences.empty() ? ": none" : "");
    for (const SettingDifference& row : differences) {
        const std::size_t begin = shown_begin(row.first, row.second);
        const std::string values = shown(row.first, begin) + " -> " + shown(row.second, begin);
        text += wrap(fmt::format("  {:<34} {}", printable(row.key), values), 37) + "\n";
    }
    return text;
}

ordered_json json_of(const std::vector<SettingDifference>& differences) {
    ordered_json rows = ordered_json::array();
    for (const SettingDifference& row : differences) {
        rows.push_back({{"key", row.key}, {"first", row.first}, {"second", row.second}});
    }
    return rows;
}

}  // namespace

std::string_view word_of(Judgement judgement) {
    constexpr std::array<std::string_view, 8> kWords{"SAME",  "FASTER", "SLOWER", "BETTER",
                                                     "WORSE", "MORE",   "LESS",   "UNCLEAR"};
    return kWords[static_cast<std::size_t>(judgement)];
}

std::string to_text(const Comparison& comparison) {
    std::string text =
        fmt::format("{} -> {}\n", printable(comparison.first), printable(comparison.second));
    for (const std::string& warning : comparison.warnings)
        text += wrap("warning: " + printable(warning), 4) + "\n";
    text += "\n";
    text += table("settings that differ", comparison.settings);
    text += table("facts that differ", comparison.environment);
    text += fmt::format("\n{:<34}{:>12}{:>12}{:>11}  {}\n", "metric", "first", "second", "change",
                        "second is");
    for (const MetricComparison& row : comparison.metrics) {
        text += fmt::format("{:<34}{:>12}{:>12}{:>11}  {}\n", row.key, number(row.first),
                            number(row.second), change(row), word_of(row.judgement));
        if (!row.why.empty()) text += wrap("    " + printable(row.why), 4) + "\n";
    }
    if (std::ranges::any_of(comparison.metrics, &MetricComparison::is_within_runs))
        text += "time ratios cover the spread within these runs, not between runs (run.repeat)\n";
    return text;
}

std::string to_json(const Comparison& comparison) {
    ordered_json metrics = ordered_json::array();
    for (const MetricComparison& row : comparison.metrics) {
        metrics.push_back({{"key", row.key},
                           {"unit", row.unit},
                           {"first", records::number_or_null(row.first)},
                           {"second", records::number_or_null(row.second)},
                           {"judgement", word_of(row.judgement)},
                           {"why", row.why}});
    }
    const ordered_json all{{"schema", "hpcai500-compare/1"},
                           {"first", comparison.first},
                           {"second", comparison.second},
                           {"warnings", comparison.warnings},
                           {"settings", json_of(comparison.settings)},
                           {"environment", json_of(comparison.environment)},
                           {"metrics", std::move(metrics)}};
    return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace hpcai::verification
