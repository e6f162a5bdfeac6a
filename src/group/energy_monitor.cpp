// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <string>

#include <sys/syscall.h>
#include <unistd.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/group/energy_monitor.hpp>
#include <hpcai/verification/derive.hpp>

namespace hpcai::group {
namespace {

constexpr const char* kSysfs = "/sys";
constexpr double kCounterIntervalSeconds = 1;
constexpr double kCounterTimeoutSeconds = 60;  // for the last reading

bool is_first_group_rank_on_node(const context::RunContext& context) {
    for (int rank = 0; rank < context.place.group_rank; ++rank) {
        const int world_rank = context.controller.world_rank_of(context.place.group, rank);
        if (context.controller.place(world_rank).node == context.place.node) return false;
    }
    return true;
}

/// Returns the GPUs that ranks of any group use on this rank's node, each once.
std::vector<std::string> gpus_of_node(const context::RunContext& context) {
    std::set<std::string> uuids;
    for (std::size_t rank = 0; rank < context.ranks.size(); ++rank) {
        const std::string& uuid = context.ranks[rank].device_uuid;
        const int node = context.controller.place(static_cast<int>(rank)).node;
        if (!uuid.empty() && node == context.place.node) uuids.insert(uuid);
    }
    return {uuids.begin(), uuids.end()};
}

std::vector<meters::Counter> interfaces_of_node() {
    if (meters::shows_own_interfaces(kSysfs)) return meters::interface_counters(kSysfs);
    return {{"net:sent", "B", "/sys does not show the network interfaces of this process"}};
}

}  // namespace

std::vector<meters::Counter> find_energy_and_network_counters(const context::RunContext& context) {
    const config::RunConfig& run = context.config.run;
    if (run.meters == config::Meters::none || run.evaluate_epochs > 0) return {};
    if (!is_first_group_rank_on_node(context)) return {};
    const Stopwatch watch;
    std::vector<meters::Counter> counters = meters::gpu_counters(
        {.seconds = [watch] { return watch.seconds(); }}, gpus_of_node(context));
    for (const auto& others : {meters::processor_counters(kSysfs), interfaces_of_node()}) {
        std::ranges::copy(others, std::back_inserter(counters));
    }
    return counters;
}

EnergyMonitor::EnergyMonitor(const context::RunContext& context,
                             const std::vector<meters::Counter>& counters)
    : context_(context) {
    if (counters.empty()) return;
    sampler_.emplace(meters::CounterLog(context.host(), counters), kCounterIntervalSeconds);
}

std::vector<CounterRecord> EnergyMonitor::finish() {
    if (!sampler_) return {};
    std::vector<CounterRecord> records = sampler_->finish(kCounterTimeoutSeconds);
    // Interfaces that appeared during training sent an unknown number of bytes.
    for (const meters::Counter& found : interfaces_of_node()) {
        if (std::ranges::count(records, found.name, &CounterRecord::name) > 0) continue;
        records.push_back(
            {context_.host(), found.name, found.unit, "it did not exist when training began", {}});
    }
    return records;
}

/// Reads boottime by a system call: libraries that replace clock functions rarely intercept it.
EnergyMonitor::Clocks EnergyMonitor::read_clocks() {
    const auto seconds = [](auto time) {
        return std::chrono::duration<double>(time.time_since_epoch()).count();
    };
    timespec boottime{};
    syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &boottime);
    return {seconds(std::chrono::system_clock::now()), seconds(std::chrono::steady_clock::now()),
            static_cast<double>(boottime.tv_sec) + 1e-9 * static_cast<double>(boottime.tv_nsec)};
}

std::vector<CounterRecord> EnergyMonitor::step_and_clock_counters(const GroupRecord& record) const {
    const Clocks end = read_clocks();
    const auto counter = [&](const char* name, double Clocks::*clock) {
        return CounterRecord{context_.host(),
                             std::string(verification::kClockPrefix) + name,
                             "s",
                             "",
                             {{begin_.utc, begin_.*clock}, {end.utc, end.*clock}}};
    };
    return {verification::steps_counter(context_.host(), begin_.utc, record),
            counter("monotonic", &Clocks::monotonic), counter("boottime", &Clocks::boottime)};
}

}  // namespace hpcai::group
