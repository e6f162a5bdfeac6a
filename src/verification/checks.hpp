// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/records/step_record.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::verification {

using workloads::Inspector;

/// A stored result that is being verified, with its configuration and layout.
struct Claim {
    const RunRecord& record;  // as stored in result.json
    const config::Config& config;
    const plan::ParallelismController& controller;
};

/// Compares the files in the directory, except summary.txt and checkpoints/, with manifest.sha256.
/// Returns the SHA-256 of manifest.sha256, or "" if it cannot be read.
std::string check_manifest(Inspector& inspector);

/// Checks the files of all groups and returns the recomputed results of the groups. `predictions`
/// may be null if no group has finished.
std::vector<GroupResult> check_groups(const Claim& claim, workloads::PredictionCheck* predictions,
                                      Inspector& inspector);

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

/// Checks samples, epoch, learning rate and phases of each step of a finished group. The caller has
/// checked record.samples_drawn. Reports the first error of each kind.
void check_steps(const Claim& claim, const GroupRecord& record,
                 const std::vector<StepRecord>& steps, const GroupFiles& files,
                 Inspector& inspector);

/// Checks record.epoch_seconds against the times of the steps, which another clock measured.
void check_epochs(const config::Config& config, const GroupRecord& record,
                  const std::vector<StepRecord>& steps, const GroupFiles& files,
                  Inspector& inspector);

/// Checks `leader`, the leader's row in ranks.csv, against the steps, which the leader stored.
void check_leader(const RankRecord& leader, const std::vector<StepRecord>& steps,
                  const GroupFiles& files, Inspector& inspector);

}  // namespace hpcai::verification
