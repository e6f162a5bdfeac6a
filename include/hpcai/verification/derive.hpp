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

/// Derives values of a result from its other values. A run fills its RunRecord with these
/// functions; `verify` calls them again with stored values. docs/METRICS.md has the formulas.
namespace hpcai::verification {

/// Returns the layout of the configured run on the given nodes. Throws as plan::make_layout.
plan::ParallelismController place_ranks(const config::Config& config,
                                        const std::vector<int>& node_of_world_rank);

/// Returns the workload of the configuration, without the facts about its data (number, digest and
/// disqualifications of the samples) and without the effective precision.
WorkloadRecord describe_workload(const config::Config& config);

/// Fills in `topology`, except for the threads, hosts and devices of its ranks, which it keeps.
void derive_topology(const plan::ParallelismController& controller, TopologyRecord& topology);

/// Fills in a group's number, number of ranks and hosts.
void describe_group(const plan::ParallelismController& controller, const TopologyRecord& topology,
                    int group, GroupRecord& record);

/// Returns the settings of the summary, with the effective layout and `precision` instead of
/// `auto`.
std::vector<ParameterRecord> summary_settings(const config::Config& config,
                                              const plan::Layout& layout,
                                              const std::string& precision);

/// Adds staged bytes and the numbers of damaged samples and decoder warnings, if any, to the lines
/// of the summary.
void add_summary_facts(const StagingRecord& staging, const std::vector<GroupResult>& groups,
                       std::vector<ParameterRecord>& parameters);

/// Returns the FLOPs of one sample in each ledger.
FlopsRecord flops_of_model(const config::Config& config);

/// Fills in the group's images_per_second and flops from its samples and training time. Does
/// nothing if the training time is unknown. The training needed `training_flops` FLOPs.
void derive_speed(double training_flops, GroupRecord& group);

/// Returns the number of micro-batches that have updated the running statistics of the group's
/// stored weights. `result` must have record.iterations and record.samples_drawn.
std::int64_t normalized_batches(const config::Config& config, const plan::Layout& layout,
                                const GroupResult& result);

/// Fills in time.time_to_quality_seconds from quality_by_epoch of the groups and quality.target.
void derive_time_to_quality(const config::Config& config, RunRecord& record);

/// Fills in quality_by_epoch of a finished group from its `steps`. Keeps the stored qualities of
/// all epochs but the last, because they cannot be recomputed.
void derive_learning_curve(const config::Config& config, const std::vector<StepRecord>& steps,
                           GroupResult& result);

/// Returns `flops` (FLOP/s of all `ranks`) per rank, and its fraction of the ceiling.
UtilizationRecord utilization_of(const CeilingRecord& ceiling, const Quantity& flops, int ranks);

/// Fills in record.communication and record.parallel from the messages and waits of the groups.
/// Throws Error(usage) if communication.torus_columns does not divide the ranks.
void derive_traffic(const config::Config& config, const plan::ParallelismController& controller,
                    const std::vector<GroupResult>& groups, RunRecord& record);

/// Fills in work, times, throughput, scores, the members' quality, utilization, training digests,
/// communication and parallel from `groups`, which has all M groups in order. Needs record.flops,
/// topology.ranks, roofline and the quality of the ensemble. Throws as derive_traffic.
void derive_results(const config::Config& config, const plan::ParallelismController& controller,
                    const std::vector<GroupResult>& groups, RunRecord& record);

/// Returns the facts for the verdict, without the exit codes of failed groups.
VerdictFacts facts_of(const RunRecord& record, const std::vector<GroupResult>& groups);

/// Returns RunRecord::summary_sha256, the SHA-256 of the summary without the manifest's digest.
std::string summary_digest(const RunRecord& record);

/// Name of the counter of the steps that a group has done. Every group that was not resumed has it.
/// Its first reading is 0, when the group's clock starts.
inline constexpr std::string_view kStepsCounter = "training:steps";

/// Prefix of the names of counters that hold the seconds of a clock other than UTC. They are read
/// at the beginning and the end of training.
inline constexpr std::string_view kClockPrefix = "clock:";

/// Key of RunRecord::environment: libraries that the dynamic linker loads first (LD_PRELOAD).
inline constexpr const char* kPreloadedFact = "preloaded_libraries";

/// Returns the counter kStepsCounter of a group whose leader is on `host` and whose clock starts at
/// `core_begin_utc_seconds`.
CounterRecord steps_counter(const std::string& host, double core_begin_utc_seconds,
                            const GroupRecord& group);

/// Returns how much a counter of a node grew between the first and the last reading by any group.
/// `by_group` has the readings of each group. If several groups read the counter at the same time,
/// the growth counts once. Let t be the time of group A's last reading. From t on, the function
/// adds the growth in the readings of group B, which cover t and end last. B's value at t is A's
/// last value if that lies between B's readings before and after t. Otherwise, and always for
/// "nvml-power", B's value at t is interpolated. The result has no value if a group could not read
/// the counter, or if the readings of all groups leave a gap.
Quantity growth(const std::vector<const CounterRecord*>& by_group);

/// Fills in record.energy, the bytes of network interfaces in record.communication and
/// scores.vflops_per_watt from the counters of the finished groups. Call it after derive_results.
/// Totals have no value after a resume, because no launch read the counters in all steps, or with
/// run.evaluate_epochs, because the counters would include evaluations.
void derive_energy(const config::RunConfig& run, const std::vector<GroupResult>& groups,
                   RunRecord& record);

}  // namespace hpcai::verification
