// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <regex>

#include <fmt/chrono.h>

#include <hpcai/meters/utc.hpp>

namespace hpcai::meters {
namespace {

constexpr double kYear10000 = 253402300800.0;

std::optional<double> parse_number(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = error == std::errc() && end == text.data() + text.size();
    if (!is_whole || !(value >= 0 && value < kYear10000)) return std::nullopt;
    return value;
}

/// Takes a fraction such as ".25" from the front of `text`; 0 if there is none.
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
    const auto all = static_cast<std::int64_t>(std::floor(utc_seconds * 1000));
    return fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(all / 1000), all % 1000);
}

std::optional<double> parse_utc(std::string_view text) {
    using namespace std::chrono;
    if (const auto number = parse_number(text)) return number;
    static const std::regex kSeconds(R"((\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d))");
    constexpr std::size_t kLength = 19;
    std::cmatch match;
    if (!std::regex_search(text.data(), text.data() + std::min(text.size(), kLength), match,
                           kSeconds, std::regex_constants::match_continuous)) {
        return std::nullopt;
    }
    text.remove_prefix(kLength);
    std::array<int, 6> parts{};
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = std::stoi(match[i + 1]);
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
