// SPDX-License-Identifier: Apache-2.0
#include "gpu_health_monitor.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "gather_results.hpp"

namespace hpcai::group {
namespace {

constexpr double kHealthIntervalSeconds = 1;
constexpr double kHealthTimeoutSeconds = 60;
constexpr double kFailureTimeoutSeconds = 5;

}  // namespace

GpuHealthMonitor::GpuHealthMonitor(const context::RunContext& context) : context_(context) {
    const auto& uuid = context.ranks[context.place.world_rank].device_uuid;
    if (uuid.empty() || context.config.run.meters == config::Meters::none) return;
    watch_.emplace(meters::NvmlSource{}.library, uuid, kHealthIntervalSeconds);
}

void GpuHealthMonitor::finish() {
    finish(kHealthTimeoutSeconds);
}

void GpuHealthMonitor::finish(double timeout_seconds) {
    if (!watch_) return;
    meters::GpuHealth health = watch_->finish(timeout_seconds);
    watch_.reset();
    health.record.world_rank = context_.place.world_rank;
    health.record.host = context_.host();
    mine_ = {std::move(health.record)};
    xids_unknown_ = std::move(health.xids_unknown);
}

std::vector<DeviceHealthRecord> GpuHealthMonitor::mine() {
    finish(kFailureTimeoutSeconds);
    return mine_;
}

std::vector<DeviceHealthRecord> GpuHealthMonitor::gather(comm::Communicator& group, Logger& log) {
    finish();
    GroupResult carrier;
    carrier.record.device_health = mine_;
    const std::vector<GroupResult> others = gather_results(group, carrier);
    if (group.rank() != 0) return {};
    if (!xids_unknown_.empty()) {
        log.info("the driver tells of no Xids of rank {}: {}", context_.place.world_rank,
                 xids_unknown_);
    }
    std::vector<DeviceHealthRecord> all = std::move(carrier.record.device_health);
    for (const GroupResult& other : others) {
        std::ranges::copy(other.record.device_health, std::back_inserter(all));
    }
    return all;
}

}  // namespace hpcai::group
