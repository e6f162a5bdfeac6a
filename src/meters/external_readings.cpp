// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/meters/external_readings.hpp>
#include <hpcai/meters/utc.hpp>

namespace hpcai::meters {
namespace {

constexpr std::string_view kWatts = "time,watts";
constexpr std::string_view kJoules = "time,joules";
constexpr double kMaxValue = 1e15;  // about a terawatt for a quarter of an hour

/// Removes and returns the first line. It ends with "\n", "\r\n" (Windows) or the text's end.
std::string_view take_line(std::string_view& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
}

std::string quoted(std::string_view cell) {
    constexpr std::size_t kMaxShown = 60;
    return fmt::format("\"{}{}\"", printable(cell.substr(0, kMaxShown)),
                       cell.size() > kMaxShown ? "..." : "");
}

ExternalReading parse_line(std::string_view line, const ExternalReadings& previous,
                           std::size_t line_number) {
    const std::string location = fmt::format("{}:{}", previous.file, line_number);
    const std::size_t comma = line.find(',');
    require(comma != std::string_view::npos, ExitCode::data,
            "{}: expected a time and a number with a comma between them, found {}", location,
            quoted(line));
    const std::string_view time_cell = line.substr(0, comma);
    const std::string_view value_cell = line.substr(comma + 1);
    const auto time = parse_utc(time_cell);
    require(time.has_value(), ExitCode::data,
            "{}: time: expected UTC as 2026-11-05T14:03:09.25Z or seconds since 1970, found {}",
            location, quoted(time_cell));
    const auto value = parse_number<double>(value_cell);
    require(value && *value >= 0 && *value <= kMaxValue, ExitCode::data,
            "{}: {}: expected a number from 0 to {}, found {}", location,
            previous.is_counter ? "joules" : "watts", kMaxValue, quoted(value_cell));
    if (!previous.readings.empty()) {
        const ExternalReading& last = previous.readings.back();
        require(*time > last.utc_seconds, ExitCode::data,
                "{}: time: expected a time after that of line {}, found {}", location, last.line,
                quoted(time_cell));
        require(!previous.is_counter || *value >= last.value, ExitCode::data,
                "{}: joules: expected at least the value of line {}, found {}", location, last.line,
                quoted(value_cell));
    }
    return {*time, *value, line_number};
}

double interpolate(const ExternalReading& left, const ExternalReading& right, double utc_seconds) {
    return left.value + (right.value - left.value) * (utc_seconds - left.utc_seconds) /
                            (right.utc_seconds - left.utc_seconds);
}

void require_coverage(const ExternalReadings& readings, const Phase& phase) {
    require(phase.end_utc_seconds > phase.begin_utc_seconds, ExitCode::usage,
            "the core phase has no length: {} to {}", utc_text(phase.begin_utc_seconds),
            utc_text(phase.end_utc_seconds));
    const double first = readings.readings.front().utc_seconds;
    const double last = readings.readings.back().utc_seconds;
    require(first <= phase.begin_utc_seconds && last >= phase.end_utc_seconds, ExitCode::data,
            "{}: expected readings over the core phase from {} to {} by the meter's clock, found "
            "{} to {}; --clock-offset corrects this clock",
            readings.file, utc_text(phase.begin_utc_seconds), utc_text(phase.end_utc_seconds),
            utc_text(first), utc_text(last));
}

}  // namespace

ExternalReadings parse_readings(std::string_view text, std::string_view file) {
    ExternalReadings readings;
    readings.file = printable(file);
    const std::string_view header = take_line(text);
    require(header == kWatts || header == kJoules, ExitCode::data,
            "{}:1: expected the header \"{}\" or \"{}\", found {}", readings.file, kWatts, kJoules,
            quoted(header));
    readings.is_counter = header == kJoules;
    for (std::size_t line = 2; !text.empty(); ++line) {
        readings.readings.push_back(parse_line(take_line(text), readings, line));
    }
    require(readings.readings.size() >= 2, ExitCode::data,
            "{}: expected two readings or more after the header, found {}", readings.file,
            readings.readings.size());
    return readings;
}

MeteredEnergy integrate(const ExternalReadings& readings, const Phase& phase,
                        const IntegrationSettings& settings) {
    const double begin = phase.begin_utc_seconds - settings.clock_offset_seconds;
    const double end = phase.end_utc_seconds - settings.clock_offset_seconds;
    require_coverage(readings, {begin, end});
    MeteredEnergy energy;
    for (std::size_t index = 1; index < readings.readings.size(); ++index) {
        const ExternalReading& left = readings.readings[index - 1];
        const ExternalReading& right = readings.readings[index];
        const double from = std::max(begin, left.utc_seconds);
        const double to = std::min(end, right.utc_seconds);
        if (!(to > from)) continue;
        const double gap = right.utc_seconds - left.utc_seconds;
        require(gap <= settings.longest_gap_seconds, ExitCode::data,
                "{}:{}: {:.3f} s after the previous reading; expected at most {} s in the core "
                "phase",
                readings.file, right.line, gap, settings.longest_gap_seconds);
        const double first = interpolate(left, right, from);
        const double last = interpolate(left, right, to);
        energy.joules += readings.is_counter ? last - first : (first + last) / 2 * (to - from);
        energy.longest_gap_seconds = std::max(energy.longest_gap_seconds, gap);
        energy.readings += energy.readings == 0 ? 2 : 1;  // the first gap has two readings
    }
    energy.average_watts = energy.joules / (end - begin);
    return energy;
}

}  // namespace hpcai::meters
