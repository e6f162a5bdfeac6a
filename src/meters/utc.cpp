// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iterator>

#include <fmt/core.h>

#include <hpcai/meters/utc.hpp>

namespace hpcai::meters {
namespace {

constexpr double kYear10000 = 253402300800.0;

/// The digits at the front of `text`, which lose them; nothing where there are not `count`.
std::optional<int> take_digits(std::string_view& text, std::size_t count) {
    if (text.size() < count) return std::nullopt;
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + count, value);
    if (error != std::errc() || end != text.data() + count || text.front() == '-') return {};
    text.remove_prefix(count);
    return value;
}

bool take_letter(std::string_view& text, char letter) {
    if (!text.starts_with(letter)) return false;
    text.remove_prefix(1);
    return true;
}

std::optional<double> parse_number(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = error == std::errc() && end == text.data() + text.size();
    if (!is_whole || !(value >= 0 && value < kYear10000)) return std::nullopt;
    return value;
}

/// ".25"; 0 where there is none.
std::optional<double> take_fraction(std::string_view& text) {
    if (!text.starts_with('.')) return 0;
    const std::size_t end = std::min(text.find_first_not_of("0123456789", 1), text.size());
    if (end < 2) return std::nullopt;
    double value = 0;
    std::from_chars(text.data(), text.data() + end, value);
    text.remove_prefix(end);
    return value;
}

}  // namespace

UtcClock::UtcClock()
    : began_(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
                 .count()) {}

std::string utc_text(double utc_seconds) {
    using namespace std::chrono;
    if (!(utc_seconds >= 0 && utc_seconds < kYear10000)) return "";
    const auto all = milliseconds(static_cast<std::int64_t>(std::floor(utc_seconds * 1000)));
    const sys_time<milliseconds> when(all);
    const auto day = floor<days>(when);
    const year_month_day date(day);
    const hh_mm_ss time(when - day);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", int(date.year()),
                       unsigned(date.month()), unsigned(date.day()), time.hours().count(),
                       time.minutes().count(), time.seconds().count(), time.subseconds().count());
}

std::optional<double> parse_utc(std::string_view text) {
    using namespace std::chrono;
    if (const auto number = parse_number(text)) return number;
    struct Part {
        std::size_t digits;
        char separator;
    };
    constexpr Part kParts[] = {{4, '-'}, {2, '-'}, {2, 'T'}, {2, ':'}, {2, ':'}, {2, '\0'}};
    int parts[std::size(kParts)] = {};
    for (std::size_t index = 0; index < std::size(kParts); ++index) {
        const auto value = take_digits(text, kParts[index].digits);
        if (!value) return std::nullopt;
        parts[index] = *value;
        const char separator = kParts[index].separator;
        if (separator != '\0' && !take_letter(text, separator)) return {};
    }
    const auto fraction = take_fraction(text);
    if (!fraction || text != "Z") return std::nullopt;
    const year_month_day date{year(parts[0]), month(static_cast<unsigned>(parts[1])),
                              day(static_cast<unsigned>(parts[2]))};
    if (!date.ok() || parts[3] > 23 || parts[4] > 59 || parts[5] > 60) return std::nullopt;
    const auto seconds_of_day = hours(parts[3]) + minutes(parts[4]) + seconds(parts[5]);
    const auto whole = sys_days(date).time_since_epoch() + seconds_of_day;
    if (whole < seconds(0)) return std::nullopt;
    return static_cast<double>(duration_cast<seconds>(whole).count()) + *fraction;
}

}  // namespace hpcai::meters
