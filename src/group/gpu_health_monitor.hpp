// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hpcai/context/run_context.hpp>
#include <hpcai/meters/gpu_health.hpp>

namespace hpcai::group {

/// Polls the health of this rank's GPU once a second in its own thread while the group trains. Does
/// nothing if the rank computes on a CPU or run.meters is none.
class GpuHealthMonitor {
public:
    explicit GpuHealthMonitor(const context::RunContext& context) : context_(context) {
        constexpr double kHealthIntervalSeconds = 1;
        const auto& uuid = context.ranks[context.place.world_rank].device_uuid;
        if (uuid.empty() || context.config.run.meters == config::Meters::none) return;
        poller_.emplace(meters::NvmlSource{}.library, uuid, kHealthIntervalSeconds);
    }

    /// Polls for the last time and returns one record, or none if this object polls nothing. Waits
    /// at most `timeout_seconds` for a driver that does not answer. Later calls return the same.
    const std::vector<DeviceHealthRecord>& finish(double timeout_seconds) {
        if (!poller_) return records_;
        meters::GpuHealth health = poller_->finish(timeout_seconds);
        poller_.reset();
        health.record.world_rank = context_.place.world_rank;
        health.record.host = context_.host();
        records_ = {std::move(health.record)};
        xids_failure_ = std::move(health.xids_failure);
        return records_;
    }

    /// Why the driver cannot report errors (Xids); empty if it can. Call it after finish().
    const std::string& xids_failure() const { return xids_failure_; }

private:
    const context::RunContext& context_;
    std::optional<meters::GpuHealthPoller> poller_;
    std::vector<DeviceHealthRecord> records_;
    std::string xids_failure_;
};

}  // namespace hpcai::group
