// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <hpcai/base/log.hpp>
#include <hpcai/base/run_record.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/meters/gpu_health.hpp>

namespace hpcai::group {

/// Looks once a second how this rank's GPU is while its group trains, in a thread of its own;
/// nothing where the rank has a CPU or run.meters is none.
class GpuHealthMonitor {
public:
    explicit GpuHealthMonitor(const context::RunContext& context);

    /// The last look, behind the last step. May be called again, and does nothing then.
    void finish();

    /// What this rank has seen, of a group that has failed; finishes, and waits for a driver that
    /// does not answer a few seconds only.
    std::vector<DeviceHealthRecord> mine();

    /// At the leader what all ranks have seen, by rank; else nothing. Finishes. Collective in the
    /// group.
    std::vector<DeviceHealthRecord> gather(comm::Communicator& group, Logger& log);

private:
    void finish(double patience_seconds);

    const context::RunContext& context_;
    std::optional<meters::GpuWatch> watch_;
    std::vector<DeviceHealthRecord> mine_;
    std::string xids_unknown_;
};

}  // namespace hpcai::group
