// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <hpcai/config/config.hpp>
#include <hpcai/graph/graph.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

#include "findings.hpp"

/// The parts of verify().
namespace hpcai::verification {

/// What of the result is taken as given while the rest of it is recomputed.
struct Claim {
    const RunRecord& record;  // as stored
    const config::Config& config;
    const plan::ParallelismController& controller;
};

/// "groups/3/".
std::string group_prefix(int group);

/// Every file below the directory against manifest.sha256. Returns that file's SHA-256; "" where
/// it cannot be read.
std::string check_manifest(Inspector& inspector);

/// Predictions of the members, and those of the ensemble that follow from them.
class PredictionCheck {
public:
    virtual ~PredictionCheck() = default;
    /// Judges what `group` has stored, as `result`, and keeps it for the vote.
    virtual void add_member(int group, GroupResult& result) = 0;
    /// Combines the members, compares that with what is stored and judges it, as `quality`.
    virtual void finish(QualityRecord& quality) = 0;
};

/// `inspector` and what is in `claim` outlive it.
std::unique_ptr<PredictionCheck> make_prediction_check(const Claim& claim, Inspector& inspector);
std::unique_ptr<PredictionCheck> make_detection_check(const Claim& claim, Inspector& inspector);

/// The files of all groups; returns their results as they must be. `predictions` may be null
/// where no group has voted.
std::vector<GroupResult> check_groups(const Claim& claim, PredictionCheck* predictions,
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
