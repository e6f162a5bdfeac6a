// SPDX-License-Identifier: Apache-2.0
#include "core_counters.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <hpcai/base/clock.hpp>
#include <hpcai/verification/energy.hpp>

#include "gather_results.hpp"

namespace hpcai::benchmark {
namespace {

constexpr const char* kSysfs = "/sys";
constexpr double kCounterIntervalSeconds = 1;
constexpr double kCounterTimeoutSeconds = 60;

const std::string& host_of(const Start& start) {
    return start.hostnames[static_cast<std::size_t>(start.place.world_rank)];
}

bool is_first_of_group_on_node(const Start& start) {
    for (int rank = 0; rank < start.place.group_rank; ++rank) {
        const int world_rank = start.controller.world_rank_of(start.place.group, rank);
        if (start.controller.place(world_rank).node == start.place.node) return false;
    }
    return true;
}

/// Of the GPUs that ranks of any group use on this rank's node, each once.
std::vector<std::string> gpus_of_node(const Start& start) {
    std::vector<std::string> uuids;
    for (std::size_t rank = 0; rank < start.ranks.size(); ++rank) {
        const std::string& uuid = start.ranks[rank].device_uuid;
        const int node = start.controller.place(static_cast<int>(rank)).node;
        if (!uuid.empty() && node == start.place.node) uuids.push_back(uuid);
    }
    std::ranges::sort(uuids);
    const auto repeated = std::ranges::unique(uuids);
    uuids.erase(repeated.begin(), repeated.end());
    return uuids;
}

std::vector<meters::Counter> interfaces_of_node() {
    if (meters::shows_own_interfaces(kSysfs)) return meters::interface_counters(kSysfs);
    return {{"net:sent", "B", "/sys does not show the network interfaces of this process"}};
}

}  // namespace

std::vector<meters::Counter> find_counters(const Start& start) {
    const config::RunConfig& run = start.config.run;
    if (run.meters == config::Meters::none || run.evaluate_epochs > 0) return {};
    if (!is_first_of_group_on_node(start)) return {};
    const Stopwatch watch;
    std::vector<meters::Counter> counters =
        meters::gpu_counters({.seconds = [watch] { return watch.seconds(); }}, gpus_of_node(start));
    for (const auto& more : {meters::processor_counters(kSysfs), interfaces_of_node()}) {
        std::ranges::copy(more, std::back_inserter(counters));
    }
    return counters;
}

CoreCounters::CoreCounters(const Start& start)
    : start_(start), begin_utc_seconds_(meters::UtcClock().seconds()) {
    if (start.counters.empty()) return;
    sampler_.emplace(meters::CounterLog(host_of(start), start.counters), kCounterIntervalSeconds);
}

std::vector<CounterRecord> CoreCounters::finish() {
    if (!sampler_) return {};
    std::vector<CounterRecord> records = sampler_->finish(kCounterTimeoutSeconds);
    // What has appeared since the beginning may have carried some of the bytes.
    for (const meters::Counter& now : interfaces_of_node()) {
        if (std::ranges::count(records, now.name, &CounterRecord::name) > 0) continue;
        records.push_back(
            {host_of(start_), now.name, now.unit, "it was not there when training began", {}});
    }
    return records;
}

std::vector<CounterRecord> CoreCounters::gather(comm::Communicator& group,
                                                const std::vector<CounterRecord>& mine,
                                                const GroupRecord& record) const {
    GroupResult carrier;
    carrier.counters = mine;
    const std::vector<GroupResult> others = gather_results(group, carrier);
    if (group.rank() != 0) return {};
    std::vector<CounterRecord> all{
        verification::steps_counter(host_of(start_), begin_utc_seconds_, record)};
    std::ranges::copy(mine, std::back_inserter(all));
    for (const GroupResult& other : others) {
        std::ranges::copy(other.counters, std::back_inserter(all));
    }
    return all;
}

}  // namespace hpcai::benchmark
