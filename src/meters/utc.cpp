// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <regex>

#include <fmt/chrono.h>

#include <hpcai/base/text.hpp>
#include <hpcai/meters/utc.hpp>

namespace hpcai::meters {
namespace {

constexpr double kYear10000 = 253402300800.0;  // Unix time

/// Removes and returns a leading fraction such as ".25"; 0 without ".", nothing without digits.
std::optional<double> take_fraction(std::string_view& text) {
    if (!text.starts_with('.')) return 0;
    const std::size_t end = std::min(text.find_first_not_of("0123456789", 1), text.size());
    if (end < 2) return std::nullopt;
    const double value = parse_number<double>(text.substr(0, end)).value_or(0);
    text.remove_prefix(end);
    return value;
}

}  // namespace

UtcClock::UtcClock()
    : start_(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
                 .count()) {}

std::string utc_text(double utc_seconds) {
    if (!(utc_seconds >= 0 && utc_seconds < kYear10000)) return "";
    const auto ms = static_cast<std::int64_t>(std::floor(utc_seconds * 1000));
    return fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(ms / 1000), ms % 1000);
}

std::optional<double> parse_utc(std::string_view text) {
    using namespace std::chrono;
    const auto number = parse_number<double>(text);
    if (number && *number >= 0 && *number < kYear10000) return number;
    static const std::regex kDateAndTime(R"((\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d))");
    constexpr std::size_t kLength = 19;
    std::cmatch match;
    if (!std::regex_search(text.data(), text.data() + std::min(text.size(), kLength), match,
                           kDateAndTime, std::regex_constants::match_continuous)) {
        return std::nullopt;
    }
    text.remove_prefix(kLength);
    std::array<int, 6> fields{};
    for (std::size_t i = 0; i < fields.size(); ++i) fields[i] = std::stoi(match[i + 1]);
    const auto fraction = take_fraction(text);
    if (!fraction || text != "Z") return std::nullopt;
    const year_month_day date{year(fields[0]), month(static_cast<unsigned>(fields[1])),
                              day(static_cast<unsigned>(fields[2]))};
    if (!date.ok() || fields[3] > 23 || fields[4] > 59 || fields[5] > 60) return std::nullopt;
    const auto seconds_of_day = hours(fields[3]) + minutes(fields[4]) + seconds(fields[5]);
    const auto since_1970 = sys_days(date).time_since_epoch() + seconds_of_day;
    if (since_1970 < seconds(0)) return std::nullopt;
    return static_cast<double>(duration_cast<seconds>(since_1970).count()) + *fraction;
}

}  // namespace hpcai::meters
