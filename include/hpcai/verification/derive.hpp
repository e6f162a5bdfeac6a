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

/// The parts of a result that follow from the rest of it. A run fills its record with these
/// functions, and `verify` calls them again with what was stored. docs/METRICS.md has the formulas.
namespace hpcai::verification {

/// Returns the layout that the configuration gives on these nodes, by world rank. Throws as
/// plan::make_layout.
plan::ParallelismController place_ranks(const config::Config& config,
                                        const std::vector<int>& node_of_world_rank);

/// Returns the workload as the configuration has it. The numbers of samples, the disqualifications
/// of the data and the effective precision stay unset.
WorkloadRecord describe_workload(const config::Config& config);

/// Fills in all of `topology` except threads, hosts and devices of the ranks, which do not change.
void derive_topology(const plan::ParallelismController& controller, TopologyRecord& topology);

/// Fills in number, ranks and hosts of a group.
void describe_group(const plan::ParallelismController& controller, const TopologyRecord& topology,
                    int group, GroupRecord& record);

/// Returns the effective settings of the summary, with values instead of `auto`. `precision` is the
/// effective precision.
std::vector<ParameterRecord> summary_settings(const config::Config& config,
                                              const plan::Layout& layout,
                                              const std::string& precision);

/// Adds the other lines of the summary: staged bytes and damaged samples, if there are any.
void add_summary_facts(const StagingRecord& staging, std::int64_t bad_samples,
                       std::vector<ParameterRecord>& parameters);

/// Returns the FLOPs of one sample in each ledger.
FlopsRecord flops_of_model(const config::Config& config);

/// Fills in images_per_second and flops of the group from its samples and training time, if known.
void derive_speed(std::int64_t training_flops_per_sample, GroupRecord& group);

/// Fills in time.time_to_quality_seconds from the groups' curves and quality.target.
void derive_time_to_quality(const config::Config& config, RunRecord& record);

/// Fills in the learning curve of a finished group. Its qualities before the last epoch stay,
/// because only the run knows them. `steps` are the steps of the group.
void derive_learning_curve(const config::Config& config, const std::vector<StepRecord>& steps,
                           GroupResult& result);

/// Returns `flops` (FLOP/s of all `ranks`) per rank, and this as a fraction of the ceiling.
UtilizationRecord utilization_of(const CeilingRecord& ceiling, const Quantity& flops, int ranks);

/// Fills in record.communication and record.parallel from the messages and waits of the groups.
/// Throws Error(usage) if communication.torus_columns does not divide the ranks.
void derive_traffic(const config::Config& config, const plan::ParallelismController& controller,
                    const std::vector<GroupResult>& groups, RunRecord& record);

/// Fills in everything that follows from `groups`, all M in order: work, times, throughput, scores,
/// the members' quality, utilization, digests, communication and parallel. Needs record.flops,
/// topology.ranks, roofline and the quality of the ensemble. Throws as derive_traffic.
void derive_results(const config::Config& config, const plan::ParallelismController& controller,
                    const std::vector<GroupResult>& groups, RunRecord& record);

/// Returns the facts for the verdict, without the exit codes of failed groups.
VerdictFacts facts_of(const RunRecord& record, const std::vector<GroupResult>& groups);

/// Returns RunRecord::summary_sha256.
std::string summary_digest(const RunRecord& record);

/// The name of a counter of every group: the steps done, 0 when the group's clock starts and all of
/// them at the end of the last step.
inline constexpr std::string_view kStepsCounter = "training:steps";

/// Returns kStepsCounter. The clock of the leader, on `host`, starts at `core_begin_utc_seconds`.
CounterRecord steps_counter(const std::string& host, double core_begin_utc_seconds,
                            const GroupRecord& group);

/// Returns the growth of one counter of a node from the first reading of any group to the last.
/// Each period counts once. `readings` has one row per group. Where the readings of group A end,
/// those of group B continue from A's last value if it lies between B's neighbouring readings.
/// Otherwise, and always for "nvml-power", B's readings are interpolated at that time.
/// No value if a group could not read the counter or if no group read it for a while.
Quantity growth(const std::vector<const CounterRecord*>& readings);

/// Fills in record.energy, the counters of interfaces in record.communication and
/// scores.vflops_per_watt from the counters of the finished groups. Call it after derive_results.
/// With run.evaluate_epochs there are no numbers, because the counters would include evaluations.
void derive_energy(const config::RunConfig& run, const std::vector<GroupResult>& groups,
                   RunRecord& record);

}  // namespace hpcai::verification
