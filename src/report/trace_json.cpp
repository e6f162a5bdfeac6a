// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <hpcai/report/trace_json.hpp>

namespace hpcai::report {
namespace {

using nlohmann::ordered_json;

std::string text_of(const ordered_json& event) {
    // Names of hosts and of graph nodes need not be UTF-8.
    return event.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string name_event(const char* what, int rank, int thread, const std::string& name) {
    return text_of(
        {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", thread}, {"args", {{"name", name}}}});
}

/// Sorts by start, then by decreasing duration, because viewers nest an event in earlier ones.
bool is_before(const TraceEvent& one, const TraceEvent& other) {
    if (one.begin_seconds != other.begin_seconds) return one.begin_seconds < other.begin_seconds;
    return one.end_seconds > other.end_seconds;
}

}  // namespace

std::string trace_events(const RankTrace& rank, double offset_seconds) {
    constexpr const char* kLanes[] = {"steps and phases", "kernels", "all-reduces"};
    constexpr const char* kCategories[] = {"step", "kernel", "sum"};  // [TraceLane], as kLanes
    const int pid = rank.world_rank;
    std::string text = name_event(
        "process_name", pid, 0,
        fmt::format("rank {} (group rank {}), {}", rank.world_rank, rank.group_rank, rank.host));
    for (int lane = 0; lane < 3; ++lane)
        text += ",\n" + name_event("thread_name", pid, lane, kLanes[lane]);
    std::vector<TraceEvent> events = rank.events;
    std::ranges::stable_sort(events, is_before);
    int all_reduce = 0;
    for (const TraceEvent& event : events) {
        const double begin = 1e6 * (event.begin_seconds + offset_seconds);
        const double end = 1e6 * (event.end_seconds + offset_seconds);
        const int lane = static_cast<int>(event.lane);
        ordered_json line{{"ph", "X"},  {"name", event.name}, {"cat", kCategories[lane]},
                          {"pid", pid}, {"tid", lane},        {"ts", begin}};
        if (event.lane != TraceLane::all_reduces) {
            line["dur"] = end - begin;
            if (!event.pass.empty()) line["args"]["pass"] = event.pass;
            text += ",\n" + text_of(line);
            continue;
        }
        line["ph"] = "b";
        line["id"] = fmt::format("{}.{}", pid, all_reduce++);
        text += ",\n" + text_of(line);
        line["ph"] = "e";
        line["ts"] = end;
        text += ",\n" + text_of(line);
    }
    return text;
}

std::string trace_json(std::span<const std::string> ranks) {
    std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        text += (rank == 0 ? "" : ",\n") + ranks[rank];
    }
    return text + "\n]}\n";
}

}  // namespace hpcai::report
