// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/config/config.hpp>
#include <hpcai/graph/graph.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/workloads/prediction_check.hpp>

/// The parts of verify().
namespace hpcai::verification {

using workloads::Inspector;

/// What of the result is taken as given while the rest of it is recomputed.
struct Claim {
    const RunRecord& record;  // as stored
    const config::Config& config;
    const plan::ParallelismController& controller;
};

/// Every file below the directory against manifest.sha256. Returns that file's SHA-256; "" where
/// it cannot be read.
std::string check_manifest(Inspector& inspector);

/// The files of all groups; returns their results as they must be. `predictions` may be null
/// where no group has voted.
std::vector<GroupResult> check_groups(const Claim& claim, workloads::PredictionCheck* predictions,
                                      Inspector& inspector);

/// The training digest of the weights in `file`, those of a model with so many steps behind it.
/// Nothing, and a finding, when they are not the weights of `graph`.
std::optional<std::string> digest_of_weights(const std::string& file, const graph::Graph& graph,
                                             std::int64_t steps_trained, Inspector& inspector);

/// The record as it must be: everything that follows from the configuration, the steps and the
/// predictions is formed again. `groups` are the results as they must be, `quality` what the
/// ensemble's predictions are worth.
RunRecord recompute(const Claim& claim, const std::vector<GroupResult>& groups,
                    const QualityRecord& quality);

}  // namespace hpcai::verification
