// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/report/record_text.hpp>

namespace hpcai::report {
namespace {

constexpr std::size_t kNamed = 4;

/// Progress of a rank, for comparisons.
auto progress_of(const FlightRecord& record) {
    return std::tuple(record.steps_done, record.all_reduces_started);
}

/// The phase of the last event that has not ended.
std::string current_phase(const FlightRecord& record) {
    const auto open = std::ranges::find_if(
        record.events.rbegin(), record.events.rend(),
        [](const FlightEvent& event) { return !event.end_seconds.value.has_value(); });
    if (open == record.events.rend()) return "before its first step";
    return fmt::format("in {} of step {}", printable(open->what), open->step);
}

std::string describe_rank(const FlightRecord& record) {
    return fmt::format(
        "rank {} (world rank {} on {}, process {}) is {}, {:.1f} s after its last step",
        record.group_rank, record.world_rank, printable(record.host), record.process,
        current_phase(record), record.silent_seconds);
}

}  // namespace

std::string describe_laggards(std::span<const FlightRecord> records) {
    if (records.empty()) return "";
    const auto least_progress = progress_of(*std::ranges::min_element(records, {}, progress_of));
    std::vector<std::string> descriptions;
    std::size_t count = 0;
    for (const FlightRecord& record : records) {
        if (progress_of(record) != least_progress) continue;
        if (++count <= kNamed) descriptions.push_back(describe_rank(record));
    }
    std::string text = fmt::format("{}", fmt::join(descriptions, "; "));
    if (count > kNamed) text += fmt::format("; at the same point: {} more", count - kNamed);
    if (count < records.size())
        text += fmt::format("; ahead of that: {} of {}", records.size() - count,
                            counted(std::ssize(records), "rank"));
    return text;
}

}  // namespace hpcai::report
