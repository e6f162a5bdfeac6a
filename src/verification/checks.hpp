// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/graph/graph.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/records/step_record.hpp>
#include <hpcai/search/history.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::verification {

using workloads::Inspector;

/// A stored result that is being verified, with its configuration and layout.
struct Claim {
    const RunRecord& record;  // as stored in result.json
    const config::Config& config;
    const plan::ParallelismController& controller;
};

/// Consecutive epochs that a group has trained with one configuration: all epochs of a base model,
/// or those of a trial.
struct TrainedEpochs {
    config::Config config;  // with the epochs of its schedule in workload.epochs
    int epochs = 0;         // trained
};

/// Returns what a group has trained. `history` is null except in an architecture search.
std::vector<TrainedEpochs> trained_epochs(const config::Config& config,
                                          const search::History* history);

/// Compares the files in the directory, except unlisted_files(), with manifest.sha256.
/// Returns the SHA-256 of manifest.sha256, or "" if it cannot be read.
std::string check_manifest(Inspector& inspector);

/// Checks the files of all groups and returns the recomputed results of the groups. `predictions`
/// may be null if no group has finished. `histories` are those of check_search().
std::vector<GroupResult> check_groups(const Claim& claim, workloads::PredictionCheck* predictions,
                                      std::span<const search::History> histories,
                                      Inspector& inspector);

/// Reads the histories of an architecture search and checks their hash chains, proposals and
/// hold-out. Returns one history for each group. Returns none for other workloads. Also returns
/// none, with a finding, if a line is impossible, because its edits must not be applied.
std::vector<search::History> check_search(const Claim& claim, Inspector& inspector);

/// Checks the trials of a finished group against its record, steps and predictions. The caller has
/// checked record.samples_drawn.
void check_trials(const Claim& claim, const search::History& history, const GroupRecord& record,
                  const std::vector<StepRecord>& steps, Inspector& inspector);

/// Reports speeds that exceed the measured ceiling or the devices' published peaks by a margin.
void check_speed(const RunRecord& record, Inspector& inspector);

/// Checks launch.json against the record, except for the places of ranks in a run with several
/// launches. If group 0 failed, different ranks wrote launch.json and the result, so values that a
/// rank measures or reads from its environment may differ.
void check_launch(const Claim& claim, Inspector& inspector);

/// Paths of a group's files in the result directory, for messages.
struct GroupFiles {
    std::string record;
    std::string steps;
    std::string ranks;
};

/// Returns the training digest of the weights in `file`; num_batches_tracked must be `batches`.
/// Reports a finding and returns nothing if the weights do not fit `graph`.
std::optional<std::string> digest_of_weights(const std::string& file, const graph::Graph& graph,
                                             std::int64_t batches, Inspector& inspector);

/// Checks samples, epoch, learning rate and phases of each step of a finished group. The caller has
/// checked record.samples_drawn. Reports the first error of each kind.
void check_steps(const std::vector<TrainedEpochs>& trained, const GroupRecord& record,
                 const std::vector<StepRecord>& steps, const GroupFiles& files,
                 Inspector& inspector);

/// Checks record.epoch_seconds against the times of the steps, which another clock measured.
void check_epochs(std::size_t epochs, const GroupRecord& record,
                  const std::vector<StepRecord>& steps, const GroupFiles& files,
                  Inspector& inspector);

/// Checks `leader`, the leader's row in ranks.csv, against the steps, which the leader stored.
void check_leader(const RankRecord& leader, const std::vector<StepRecord>& steps,
                  const GroupFiles& files, Inspector& inspector);

}  // namespace hpcai::verification
