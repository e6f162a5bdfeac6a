// SPDX-License-Identifier: Apache-2.0
#include "gpu_health_monitor.hpp"

#include <utility>

namespace hpcai::group {

GpuHealthMonitor::GpuHealthMonitor(const context::RunContext& context) : context_(context) {
    constexpr double kHealthIntervalSeconds = 1;
    const auto& uuid = context.ranks[context.place.world_rank].device_uuid;
    if (uuid.empty() || context.config.run.meters == config::Meters::none) return;
    watch_.emplace(meters::NvmlSource{}.library, uuid, kHealthIntervalSeconds);
}

const std::vector<DeviceHealthRecord>& GpuHealthMonitor::finish(double timeout_seconds) {
    if (!watch_) return records_;
    meters::GpuHealth health = watch_->finish(timeout_seconds);
    watch_.reset();
    health.record.world_rank = context_.place.world_rank;
    health.record.host = context_.host();
    records_ = {std::move(health.record)};
    xids_failure_ = std::move(health.xids_failure);
    return records_;
}

}  // namespace hpcai::group
