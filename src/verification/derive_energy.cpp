// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/meters/utc.hpp>
#include <hpcai/verification/derive.hpp>

namespace hpcai::verification {
namespace {

constexpr const char* kNoGroup = "no group finished";

/// Returns why the readings do not cover exactly all steps; empty if they do.
std::string why_not_read(const config::RunConfig& run, bool was_resumed) {
    if (run.meters == config::Meters::none) return "run.meters is none";
    if (run.evaluate_epochs != 0)
        return "run.evaluate_epochs is not 0: the meters would include the evaluations";
    if (was_resumed) return "a group was resumed: no launch read the meters in all its steps";
    return "";
}

struct Meter {
    std::string_view family;  // begins the names of the counters
    std::string_view name;    // of the kind of meters
    std::string_view method;
};
constexpr std::array kMeters{
    Meter{"nvml", "NVML", "NVML counts the joules of the GPUs that the ranks use"},
    Meter{"nvml-power", "NVML",
          "NVML's power of GPUs that count no joules is integrated by the trapezoidal rule"},
    Meter{"rapl", "RAPL", "RAPL counts the joules of the processors' packages and their memory"},
};

constexpr const char* kMethod =
    "each node is read about every second while one of its groups trains, from the start of the "
    "group's clock to its last step; power supplies, fans, disks and networks are not included";
// EE HPC WG: the Energy Efficient HPC Working Group.
constexpr const char* kCounterLevel =
    "meters of components: not Level 1, 2 or 3 of the EE HPC WG's methodology, which require the "
    "power of whole nodes over the core phase by separate meters";

double begin_of(const CounterRecord& record) {
    return record.readings.front().utc_seconds;
}
double end_of(const CounterRecord& record) {
    return record.readings.back().utc_seconds;
}

/// Returns the value of the counter at a time: `peer_value`, another group's value at that time,
/// if it lies between the neighbouring readings, else an interpolated value.
double value_at(const CounterRecord& record, double utc_seconds, std::optional<double> peer_value) {
    const auto& readings = record.readings;
    const auto right =
        std::ranges::upper_bound(readings, utc_seconds, {}, &CounterReading::utc_seconds);
    if (right == readings.end()) return readings.back().value;
    if (right == readings.begin()) return readings.front().value;
    const CounterReading& left = *(right - 1);
    if (peer_value && left.value <= *peer_value && *peer_value <= right->value) return *peer_value;
    return left.value + (right->value - left.value) * (utc_seconds - left.utc_seconds) /
                            (right->utc_seconds - left.utc_seconds);
}

std::string_view family_of(std::string_view name) {
    return name.substr(0, name.find(':'));
}

/// Returns the kind of a family, such as "NVML" for the families "nvml" and "nvml-power".
std::string_view name_of_kind(std::string_view family) {
    const auto* kind = std::ranges::find(kMeters, family, &Meter::family);
    return kind == kMeters.end() ? "" : kind->name;
}

/// The readings of each group, by host and name of the counter.
using Counters = std::map<std::pair<std::string, std::string>, std::vector<const CounterRecord*>>;

Counters counters_of(const std::vector<GroupResult>& groups) {
    Counters counters;
    for (const GroupResult& group : groups) {
        if (!group.record.failure.empty()) continue;
        for (const CounterRecord& counter : group.counters) {
            counters[{counter.host, counter.name}].push_back(&counter);
        }
    }
    return counters;
}

std::set<std::string> hosts_of(const TopologyRecord& topology) {
    std::set<std::string> hosts;
    for (const PlaceRecord& place : topology.map) hosts.insert(place.host);
    return hosts;
}

std::string shared_host_name(const TopologyRecord& topology) {
    std::map<std::string, int> node_of_host;
    for (const PlaceRecord& place : topology.map) {
        const auto [row, is_new] = node_of_host.emplace(place.host, place.node);
        if (!is_new && row->second != place.node) return place.host;
    }
    return "";
}

/// Returns the sum over all rows if each row has a number and each host has a row. `missing` is the
/// name of a row in the message about a host without a row.
template <typename Row>
Quantity sum_of(const std::vector<Row>& rows, Quantity Row::*number, std::set<std::string> hosts,
                std::string_view missing) {
    double sum = 0;
    for (const Row& row : rows) {
        const Quantity& quantity = row.*number;
        if (!quantity.value)
            return no_value(fmt::format("{} of {}: {}", row.name, row.host, quantity.reason));
        sum += *quantity.value;
        hosts.erase(row.host);
    }
    if (hosts.empty()) return {sum, ""};
    return no_value(fmt::format("no {} on {}", missing, *hosts.begin()));
}

/// Adds the core phase: from the start of the first step to the end of the last step of all groups,
/// by the leaders' clocks. Returns its length, or why it is unknown. All groups start after the
/// same barrier, so the phase is as long as the longest training unless the clocks differ.
Quantity add_core_phase(const Counters& counters, EnergyRecord& energy) {
    constexpr double kMinSlackSeconds = 5, kSlackShare = 0.01;
    std::optional<double> begin, end;
    double longest = 0;
    for (const auto& [key, by_group] : counters) {
        if (key.second != kStepsCounter) continue;
        for (const CounterRecord* counter : by_group) {
            if (counter->readings.empty()) continue;
            begin = std::min(begin.value_or(begin_of(*counter)), begin_of(*counter));
            end = std::max(end.value_or(end_of(*counter)), end_of(*counter));
            longest = std::max(longest, end_of(*counter) - begin_of(*counter));
        }
    }
    if (!begin) return no_value("the core phase has no length");
    const double seconds = *end - *begin;
    if (seconds > longest + std::max(kMinSlackSeconds, kSlackShare * longest)) {
        return no_value(
            fmt::format("the clocks of the hosts differ: by them the core phase takes {:.3f} s, "
                        "but the longest training {:.3f} s",
                        seconds, longest));
    }
    energy.core_begin_utc = meters::utc_text(*begin);
    energy.core_end_utc = meters::utc_text(*end);
    if (seconds > 0) return {seconds, ""};
    return no_value("the core phase has no length");
}

std::string why_no_meter(const std::string& why_unread, const EnergyRecord& energy,
                         bool has_groups) {
    if (!why_unread.empty()) return why_unread;
    if (!has_groups) return kNoGroup;
    if (energy.meters.empty()) return "the nodes have no readable energy meter";
    const MeterRecord& first = energy.meters.front();
    return fmt::format("{} of {}: {}", first.name, first.host, first.joules.reason);
}

void add_sources(const std::vector<std::string_view>& kinds, EnergyRecord& energy) {
    energy.source = fmt::format("{}", fmt::join(kinds, " and "));
    energy.level = kCounterLevel;
    std::set<std::string> families;
    for (const MeterRecord& meter : energy.meters)
        if (meter.joules.value) families.emplace(family_of(meter.name));
    for (const Meter& kind : kMeters) {
        if (families.contains(std::string(kind.family))) {
            energy.method += fmt::format("{}; ", kind.method);
        }
    }
    energy.method += kMethod;
}

/// Returns the sum of record.energy.meters, and fills in source, level and method of record.energy.
Quantity total_joules(const std::string& why_unread, bool has_groups, RunRecord& record) {
    EnergyRecord& energy = record.energy;
    std::vector<std::string_view> kinds;
    double sum = 0;
    std::optional<Quantity> incomplete;
    for (const std::string_view kind : {"NVML", "RAPL"}) {
        std::vector<MeterRecord> meters = energy.meters;
        std::erase_if(meters, [&](const MeterRecord& meter) {
            return name_of_kind(family_of(meter.name)) != kind;
        });
        const bool is_known = std::ranges::any_of(
            meters, [](const MeterRecord& meter) { return meter.joules.value.has_value(); });
        if (!is_known) continue;
        kinds.push_back(kind);
        const Quantity joules = sum_of(meters, &MeterRecord::joules, hosts_of(record.topology),
                                       fmt::format("readings of {}", kind));
        if (!joules.value && !incomplete) incomplete = joules;
        sum += joules.value.value_or(0);
    }
    if (kinds.empty()) return no_value(why_no_meter(why_unread, energy, has_groups));
    add_sources(kinds, energy);
    const std::string shared = shared_host_name(record.topology);
    if (!shared.empty()) return no_value("topology.map has several nodes called " + shared);
    return incomplete ? *incomplete : Quantity{sum, ""};
}

void add_interfaces(const Counters& counters, std::vector<InterfaceRecord>& interfaces) {
    for (const auto& [key, by_group] : counters) {
        const auto& [host, counter] = key;  // counter: a name such as "net:eth0:sent"
        const bool is_interface = counter.starts_with("net:") || counter.starts_with("ib:");
        if (!is_interface || !counter.ends_with(":sent")) continue;
        const std::string name = counter.substr(0, counter.rfind(':'));
        const auto received = counters.find({host, name + ":received"});
        interfaces.push_back({host, name, growth(by_group),
                              received == counters.end() ? no_value("no counter of received bytes")
                                                         : growth(received->second)});
    }
}

Quantity all_sent_bytes(const std::string& why_unread, bool has_groups, const RunRecord& record) {
    if (!why_unread.empty()) return no_value(why_unread);
    if (!has_groups) return no_value(kNoGroup);
    const std::string shared = shared_host_name(record.topology);
    if (!shared.empty()) return no_value("topology.map has several nodes called " + shared);
    return sum_of(record.communication.interfaces, &InterfaceRecord::sent_bytes,
                  hosts_of(record.topology), "counter of an interface");
}

}  // namespace

CounterRecord steps_counter(const std::string& host, double core_begin_utc_seconds,
                            const GroupRecord& group) {
    const double end = core_begin_utc_seconds + group.training_seconds.value.value_or(0);
    return {host,
            std::string(kStepsCounter),
            "1",
            "",
            {{core_begin_utc_seconds, 0}, {end, static_cast<double>(group.iterations)}}};
}

Quantity growth(const std::vector<const CounterRecord*>& by_group) {
    for (const CounterRecord* row : by_group) {
        if (!row->failure.empty()) return no_value(row->failure);
        if (row->readings.empty()) return no_value("the counter was not read");
    }
    double now = begin_of(**std::ranges::min_element(
        by_group, {}, [](const CounterRecord* row) { return begin_of(*row); }));
    double sum = 0;
    std::optional<double> last_reading;
    for (;;) {
        const CounterRecord* longest = nullptr;
        bool is_done = true;
        for (const CounterRecord* row : by_group) {
            if (end_of(*row) <= now) continue;
            is_done = false;
            const bool covers = begin_of(*row) <= now;
            if (covers && (longest == nullptr || end_of(*row) > end_of(*longest))) longest = row;
        }
        if (is_done) return {sum, ""};
        if (longest == nullptr) return no_value("no group read the counter for some time");
        sum += longest->readings.back().value - value_at(*longest, now, last_reading);
        now = end_of(*longest);
        // Each group integrates NVML's power from 0, so the readings of two groups are unrelated.
        if (family_of(longest->name) != "nvml-power") last_reading = longest->readings.back().value;
    }
}

void derive_energy(const config::RunConfig& run, const std::vector<GroupResult>& groups,
                   RunRecord& record) {
    const bool was_resumed = std::ranges::any_of(
        groups, [](const GroupResult& group) { return !group.record.continuations.empty(); });
    const std::string why_unread = why_not_read(run, was_resumed);
    const Counters counters = was_resumed ? Counters{} : counters_of(groups);
    EnergyRecord& energy = record.energy;
    energy = {};
    Quantity core_seconds = no_value("the core phase has no length");
    if (run.evaluate_epochs == 0) core_seconds = add_core_phase(counters, energy);
    for (const auto& [key, by_group] : counters) {
        if (name_of_kind(family_of(key.second)).empty()) continue;
        energy.meters.push_back({key.first, key.second, growth(by_group)});
    }
    add_interfaces(counters, record.communication.interfaces);
    const bool has_groups = !counters.empty();
    energy.joules = total_joules(why_unread, has_groups, record);
    energy.average_watts = energy.joules;
    if (energy.joules.value) {
        energy.average_watts = core_seconds;
        if (core_seconds.value)
            *energy.average_watts.value = *energy.joules.value / *core_seconds.value;
    }
    record.communication.counted_sent_bytes = all_sent_bytes(why_unread, has_groups, record);
    Quantity& efficiency = record.scores.vflops_per_watt;
    const Quantity& vflops = record.scores.vflops;
    const Quantity& watts = energy.average_watts;
    efficiency = !watts.value       ? watts
                 : !vflops.value    ? vflops
                 : *watts.value > 0 ? Quantity{*vflops.value / *watts.value, ""}
                                    : no_value("the meters counted no energy");
}

}  // namespace hpcai::verification
