// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <hpcai/base/run_record.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/meters/sampler.hpp>

namespace hpcai::group {

/// The meters and interfaces of this rank's node, where the configuration asks for them and this
/// rank is the first of its group there; else none. Opens what is slow to open.
std::vector<meters::Counter> find_counters(const context::RunContext& context);

/// Reads counters while a group trains, in a thread of its own.
class EnergyMonitor {
public:
    /// The first reading; the group's clock has just started.
    EnergyMonitor(const context::RunContext& context, const std::vector<meters::Counter>& counters);

    /// The last reading, of this rank.
    std::vector<CounterRecord> finish();

    /// After the last step; at the leader what all ranks have read, and its steps, else nothing.
    /// Collective in the group.
    std::vector<CounterRecord> gather(comm::Communicator& group,
                                      const std::vector<CounterRecord>& mine,
                                      const GroupRecord& record) const;

private:
    const context::RunContext& context_;
    double begin_utc_seconds_;
    std::optional<meters::Sampler> sampler_;
};

}  // namespace hpcai::group
