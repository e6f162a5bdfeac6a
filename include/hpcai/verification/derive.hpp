// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/records/step_record.hpp>
#include <hpcai/verification/verdict.hpp>

/// What in a result follows from the rest of it: a run fills its record with these, and `verify`
/// does so again from what was stored. Formulas are those of docs/METRICS.md.
namespace hpcai::verification {

/// What the configuration says of the workload. The samples, the objections to the data and the
/// precision in force are not known from it.
WorkloadRecord describe_workload(const config::Config& config);

/// Places all ranks as `controller` does; their threads, hosts and devices stay.
void derive_topology(const plan::ParallelismController& controller, TopologyRecord& topology);

/// The settings that the summary echoes, in force and not as they were written: no `auto` where the
/// start has decided. `precision` is that in force.
std::vector<ParameterRecord> echo_settings(const config::Config& config, const plan::Layout& layout,
                                           const std::string& precision);

/// Adds what the summary echoes besides the settings: bytes that were staged, and damaged samples,
/// where there are any.
void echo_facts(const StagingRecord& staging, std::int64_t bad_samples,
                std::vector<ParameterRecord>& parameters);

/// FLOPs of one sample in each ledger.
FlopsRecord flops_of_model(const config::Config& config);

/// The group's images_per_second and flops, from its samples and a known training time.
void derive_speed(std::int64_t training_flops_per_sample, GroupRecord& group);

/// Sums and extremes over the groups' work: record.work, the training and epoch times in
/// record.time, record.throughput, scores.flops and the digests, from record.flops,
/// topology.ranks and `groups`, all M in order.
void derive_work(const std::vector<GroupResult>& groups, RunRecord& record);

/// Target and exponent, the members' qualities, their mean and the ensemble's gain over it.
void derive_members(const config::Config& config, const std::vector<GroupResult>& groups,
                    QualityRecord& quality);

/// time.time_to_quality_seconds, from the groups' curves and quality.target.
void derive_time_to_quality(const config::Config& config, RunRecord& record);

/// The learning curve of a group that finished, but for the qualities before the last epoch's,
/// which only the run knows: what it has stays. `steps` are the group's.
void derive_learning_curve(const config::Config& config, const std::vector<StepRecord>& steps,
                           GroupResult& result);

/// The penalty coefficient and VFLOPS with its interval, from scores.flops and the quality.
void derive_scores(RunRecord& record);

/// record.communication, from what the groups have sent and waited. Throws Error(usage) where
/// communication.torus_columns does not divide the ranks.
void derive_communication(const config::Config& config,
                          const plan::ParallelismController& controller,
                          const std::vector<GroupResult>& groups, RunRecord& record);

/// record.parallel, likewise.
void derive_parallel(const config::Config& config, const plan::Layout& layout,
                     const std::vector<GroupResult>& groups, RunRecord& record);

/// record.time_breakdown, from those of the groups that finished.
void derive_time_breakdown(RunRecord& record);

/// What `flops` of all ranks are of the ceiling.
UtilizationRecord utilization_of(const CeilingRecord& ceiling, const Quantity& flops, int ranks);

/// What the verdict is made from, but for the failures' exit codes.
VerdictFacts facts_of(const RunRecord& record, const std::vector<GroupResult>& groups);

/// RunRecord::summary_sha256.
std::string summary_digest(const RunRecord& record);

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
