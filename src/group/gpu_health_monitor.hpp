// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <hpcai/context/run_context.hpp>
#include <hpcai/meters/gpu_health.hpp>
#include <hpcai/records/run_record.hpp>

namespace hpcai::group {

/// Polls the health of this rank's GPU once a second in its own thread while the group trains. Does
/// nothing if the rank computes on a CPU or run.meters is none.
class GpuHealthMonitor {
public:
    explicit GpuHealthMonitor(const context::RunContext& context);

    /// Polls for the last time and returns the readings: one record, or none without a GPU. Waits
    /// at most `timeout_seconds` for a driver that does not answer. Later calls return the same.
    const std::vector<DeviceHealthRecord>& finish(double timeout_seconds);

    /// Why the driver reports no errors (XIDs); empty if it does. Call it after finish().
    const std::string& xids_failure() const { return xids_failure_; }

private:
    const context::RunContext& context_;
    std::optional<meters::GpuHealthPoller> watch_;
    std::vector<DeviceHealthRecord> records_;
    std::string xids_failure_;
};

}  // namespace hpcai::group
