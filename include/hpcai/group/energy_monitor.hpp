// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <hpcai/context/run_context.hpp>
#include <hpcai/meters/sampler.hpp>
#include <hpcai/records/run_record.hpp>

namespace hpcai::group {

/// Returns the meters and interfaces of this rank's node if the configuration asks for them and
/// this rank is the first of its group there; else none. Opens the ones that are slow to open.
std::vector<meters::Counter> find_counters(const context::RunContext& context);

/// Reads counters while a group trains, in a thread of its own.
class EnergyMonitor {
public:
    /// Takes the first reading. The group's clock has just started.
    EnergyMonitor(const context::RunContext& context, const std::vector<meters::Counter>& counters);

    /// Returns the readings of this rank after a last one.
    std::vector<CounterRecord> finish();

    /// Returns the counter of the group's steps by this rank's clock, after the last step.
    CounterRecord steps(const GroupRecord& record) const;

private:
    const context::RunContext& context_;
    double begin_utc_seconds_;
    std::optional<meters::Sampler> sampler_;
};

}  // namespace hpcai::group
