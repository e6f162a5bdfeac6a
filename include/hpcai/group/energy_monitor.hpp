// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <hpcai/context/run_context.hpp>
#include <hpcai/meters/sampler.hpp>
#include <hpcai/records/run_record.hpp>

namespace hpcai::group {

/// Returns the energy and network counters of this rank's node. Empty if this rank is not its
/// group's first on the node, or if run.meters is none. Also empty if run.evaluate_epochs is above
/// 0, because the counters would include the evaluations.
std::vector<meters::Counter> find_energy_and_network_counters(const context::RunContext& context);

/// Reads counters in its own thread while a group trains.
class EnergyMonitor {
public:
    /// Takes the first reading. Construct it right after the group's clock.
    EnergyMonitor(const context::RunContext& context, const std::vector<meters::Counter>& counters);

    /// Takes the last reading and returns all readings of this rank.
    std::vector<CounterRecord> finish();

    /// Returns counters with two readings each, when training began and ended. The first counts the
    /// group's steps; `record` has training time and iterations. The others are two clocks
    /// (verification::kClockPrefix): the clock that times the steps, and a clock that also runs
    /// while the system is suspended.
    std::vector<CounterRecord> step_and_clock_counters(const GroupRecord& record) const;

private:
    struct Clocks {
        double utc, monotonic, boottime;  // seconds
    };
    static Clocks read_clocks();

    const context::RunContext& context_;
    const Clocks begin_ = read_clocks();
    std::optional<meters::Sampler> sampler_;
};

}  // namespace hpcai::group
