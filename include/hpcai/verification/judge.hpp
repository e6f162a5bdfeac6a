// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/evaluation/box_fusion.hpp>
#include <hpcai/evaluation/coco_json.hpp>
#include <hpcai/evaluation/detection_ensemble.hpp>
#include <hpcai/evaluation/member_bootstrap.hpp>
#include <hpcai/evaluation/top_k.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/tensor/shape.hpp>

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

/// In evaluation/, where cells have classes: their names, one a line.
inline constexpr const char* kClassNamesFile = "classes.txt";

/// Returns the workload's metric without numbers.
MetricRecord metric_of(const config::WorkloadConfig& workload);

/// Returns a quality by `metric` in which each number is missing for the same reason.
QualityRecord no_quality(MetricRecord metric, const std::string& reason);

/// Softmax outputs of a model or of an ensemble; a row is a sample, or a cell of it.
struct Probabilities {
    std::span<const float> values;         // (rows, classes)
    std::span<const std::int32_t> labels;  // (rows); evaluation::kPaddingLabel: not scored
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

/// Mean intersection over union of one member's cells. Throws as evaluation::count_cells does.
void judge_cells(const Probabilities& said, GroupResult& result);

/// The ensemble's quality with its interval, and each class's. Throws likewise.
void judge_cell_vote(const VotedProbabilities& said, std::int64_t cells_per_sample,
                     const std::vector<std::string>& class_names, QualityRecord& quality);

/// The 95 % interval by the bootstrap over samples of the mean intersection over union or, with an
/// `other`, of how much higher the other's is on the same labels. Nothing where there is no cell.
std::optional<evaluation::Interval> cell_interval_95(const Probabilities& said,
                                                     std::int64_t cells_per_sample,
                                                     const Probabilities* other);

/// A task whose predictions are rows of probabilities.
struct ProbabilityTask {
    std::int64_t cells = 0;    // of a sample, by rows; 0: a sample is one row of probabilities
    std::int64_t classes = 0;  // the background of cells among them
    std::vector<std::string> class_names;
    std::function<void(const Probabilities&, GroupResult&)> judge_member;
    std::function<void(const VotedProbabilities&, QualityRecord&)> judge_vote;

    std::int64_t rows_per_sample() const { return cells == 0 ? 1 : cells; }
    /// (samples x rows_per_sample)
    tensor::Shape label_shape(std::int64_t samples) const;
    /// (samples x rows_per_sample, classes)
    tensor::Shape shape(std::int64_t samples) const;
};

/// `class_names` matter where cells have classes. Throws Error(internal) for a detector.
ProbabilityTask probability_task(const config::Config& config,
                                 std::vector<std::string> class_names);
/// Draws of so many members that vote on so many test samples of a classifier.
evaluation::MemberBootstrap member_bootstrap_of(const config::Config& config, int members,
                                                std::int64_t samples);

/// quality.members_interval: the bootstrap's, which may have had an objection.
IntervalRecord members_interval_of(const std::string& objection,
                                   const std::optional<evaluation::Interval>& interval);

/// AP50 of one member's detections.
void judge_detections(const evaluation::DetectionTruth& truth,
                      std::span<const evaluation::Detection> said, GroupResult& result);

/// The quality of an ensemble's detections with its intervals, and each category's.
void judge_fusion(const evaluation::Annotations& truth, std::span<const evaluation::Detection> said,
                  QualityRecord& quality);

/// How `bagging` and `detector` fuse the members' detections.
evaluation::FusionOptions fusion_of(const config::Config& config);

/// The detectors of one rank of those that have all.
struct DetectorMembers {
    std::span<const evaluation::Member> mine;
    int first = 0;  // number of the first of them
    int all = 0;
};

/// quality.members_interval of detectors, at rank 0. Collective.
IntervalRecord detectors_interval(comm::Communicator& ranks, const config::Config& config,
                                  const evaluation::DetectionTruth& truth,
                                  const DetectorMembers& members);

}  // namespace hpcai::verification
