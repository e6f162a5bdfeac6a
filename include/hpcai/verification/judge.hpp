// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>

#include <hpcai/base/run_record.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/evaluation/box_fusion.hpp>
#include <hpcai/evaluation/coco_json.hpp>
#include <hpcai/evaluation/member_bootstrap.hpp>

/// What predictions are worth: the workload's quality of one member and of the ensemble, as
/// docs/METRICS.md has it.
namespace hpcai::verification {

/// Files that hold predictions, by their names in groups/<m>/ and in evaluation/.
struct PredictionFiles {
    std::string member;
    std::string ensemble;
    std::string labels;
};

PredictionFiles prediction_files(const config::WorkloadConfig& workload);

/// "top_1_accuracy", "coco_ap50".
std::string metric_of(const config::WorkloadConfig& workload);

/// A quality without numbers, each for the same reason.
QualityRecord no_quality(const std::string& reason);

/// Softmax outputs of a model or of an ensemble.
struct Probabilities {
    std::span<const float> values;         // (samples, classes)
    std::span<const std::int32_t> labels;  // (samples); evaluation::kPaddingLabel: not scored
    std::int64_t classes = 0;
};

/// Top-1 and Top-5 of one member. Throws as evaluation::top_k does.
void judge_member(const Probabilities& said, GroupResult& result);

/// What an ensemble says by both kinds of vote, on the same labels.
struct VotedProbabilities {
    Probabilities soft;
    Probabilities majority;
    bool majority_counts = false;  // bagging.aggregation
};

/// The ensemble's quality with its interval; out-of-bag it is unknown yet. Throws likewise.
void judge_vote(const VotedProbabilities& said, QualityRecord& quality);

/// Draws of so many members that vote on so many test samples of a classifier.
evaluation::MemberBootstrap member_bootstrap_of(const config::Config& config, int members,
                                                std::int64_t samples);

/// quality.members_interval: the bootstrap's, which may have had an objection.
IntervalRecord members_interval_of(const std::string& objection,
                                   const std::optional<evaluation::Interval>& interval);

/// AP50 of one member's detections.
void judge_detections(const evaluation::DetectionTruth& truth,
                      std::span<const evaluation::Detection> said, GroupResult& result);

/// The quality of an ensemble's detections with its interval, and each category's.
void judge_fusion(const evaluation::Annotations& truth, std::span<const evaluation::Detection> said,
                  QualityRecord& quality);

/// How `bagging` and `detector` fuse the members' detections.
evaluation::FusionOptions fusion_of(const config::Config& config);

}  // namespace hpcai::verification
