// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include <fmt/core.h>

#include <hpcai/base/units.hpp>

namespace hpcai {
namespace {

constexpr std::string_view kNotAvailable = "n/a";

/// Formats three significant digits, but at most two decimals and all digits before the point.
std::string format_three_digits(double value) {
    const double magnitude = std::abs(value);
    const int decimals = magnitude < 9.995 ? 2 : magnitude < 99.95 ? 1 : 0;
    return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
    constexpr std::array kPrefixes = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) return fmt::format("{} B", bytes);
    double value = static_cast<double>(bytes) / 1024;
    std::size_t prefix = 0;
    while (value >= 1023.5 && prefix + 1 < kPrefixes.size()) {
        value /= 1024;
        ++prefix;
    }
    return fmt::format("{} {}", format_three_digits(value), kPrefixes[prefix]);
}

std::string format_si(double value, std::string_view unit) {
    constexpr std::array kPrefixes = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
    if (!std::isfinite(value)) return std::string(kNotAvailable);
    if (std::abs(value) < 5e-12) return fmt::format("0 {}", unit);
    double scaled = value * 1e9;
    std::size_t prefix = 0;
    while (std::abs(scaled) >= 999.5 && prefix + 1 < kPrefixes.size()) {
        scaled /= 1000;
        ++prefix;
    }
    return fmt::format("{} {}{}", format_three_digits(scaled), kPrefixes[prefix], unit);
}

std::string format_seconds(double seconds) {
    if (!std::isfinite(seconds)) return std::string(kNotAvailable);
    if (seconds < 0) return fmt::format("-{}", format_seconds(-seconds));
    if (seconds < 59.95) return format_si(seconds, "s");
    if (const double days = seconds / 86400; days >= 1e9) return fmt::format("{:.3g} d", days);
    const auto rounded = static_cast<std::int64_t>(std::llround(seconds));
    if (rounded < 3600) return fmt::format("{} min {:02} s", rounded / 60, rounded % 60);
    const std::int64_t minutes = rounded / 60;
    if (minutes < 1440) return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
    return fmt::format("{} d {:02} h", minutes / 1440, minutes % 1440 / 60);
}

std::string format_percent(double fraction) {
    return std::isfinite(fraction) ? fmt::format("{:.1f} %", 100 * fraction)
                                   : std::string(kNotAvailable);
}

std::string format_count(std::int64_t count) {
    const std::string digits = fmt::format("{}", count);
    std::string grouped;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        const bool group_starts = i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-';
        if (group_starts) grouped += ' ';
        grouped += digits[i];
    }
    return grouped;
}

std::string counted(std::int64_t count, std::string_view noun) {
    const bool takes_es = (noun.ends_with("ch") && !noun.ends_with("epoch")) ||
                          noun.ends_with("s") || noun.ends_with("x");
    const char* const ending = count == 1 ? "" : takes_es ? "es" : "s";
    return fmt::format("{} {}{}", format_count(count), noun, ending);
}

}  // namespace hpcai
