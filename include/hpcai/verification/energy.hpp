// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/records/run_record.hpp>

/// What the counters of all groups say of the run. Formulas are those of docs/METRICS.md.
namespace hpcai::verification {

/// The counter that every group's leader has: steps done, 0 at the start of the group's clock and
/// all of them at the end of its last step.
inline constexpr std::string_view kStepsCounter = "training:steps";

/// From the leader's host and clock.
CounterRecord steps_counter(const std::string& host, double core_begin_utc_seconds,
                            const GroupRecord& group);

/// By how much a counter of one node has grown while any group read it: from the first reading of
/// all to the last, each stretch of time once. `readings` are those of several groups of the same
/// counter, at least one. Where one ends and another goes on, the latter is at the former's
/// last value where that lies between its own, else on the line between them, as always for
/// "nvml-power". None where a group could not read it or where no group did for a while.
Quantity growth(const std::vector<const CounterRecord*>& readings);

/// record.energy, the interfaces' numbers of record.communication and scores.vflops_per_watt, from
/// the counters of the groups that finished; after derive_scores and derive_communication. Where
/// run.evaluate_epochs has evaluations between the steps, there are no numbers: they would be of
/// these, too.
void derive_energy(const config::RunConfig& run, const std::vector<GroupResult>& groups,
                   RunRecord& record);

}  // namespace hpcai::verification
