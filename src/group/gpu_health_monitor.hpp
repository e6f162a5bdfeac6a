// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <hpcai/base/log.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/meters/gpu_health.hpp>
#include <hpcai/records/run_record.hpp>

namespace hpcai::group {

/// Polls the health of this rank's GPU once a second while its group trains, in a thread of its
/// own. Does nothing if the rank has a CPU or run.meters is none.
class GpuHealthMonitor {
public:
    explicit GpuHealthMonitor(const context::RunContext& context);

    /// Polls for the last time, after the last step. Later calls do nothing.
    void finish();

    /// Finishes and returns the readings of this rank, for a failed group. Waits only a few seconds
    /// for a driver that does not answer.
    std::vector<DeviceHealthRecord> mine();

    /// Finishes and returns the readings of all ranks, by rank, at the leader; nothing elsewhere.
    /// Collective in the group.
    std::vector<DeviceHealthRecord> gather(comm::Communicator& group, Logger& log);

private:
    void finish(double timeout_seconds);

    const context::RunContext& context_;
    std::optional<meters::GpuWatch> watch_;
    std::vector<DeviceHealthRecord> mine_;
    std::string xids_unknown_;
};

}  // namespace hpcai::group
