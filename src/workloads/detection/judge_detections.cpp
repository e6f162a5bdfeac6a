// SPDX-License-Identifier: Apache-2.0
#include "judge_detections.hpp"

#include <hpcai/evaluation/average_precision.hpp>
#include <hpcai/workloads/intervals.hpp>

namespace hpcai::workloads {
namespace {

constexpr const char* kNoBox = "no test sample has a box";

Quantity mean_of(const evaluation::DetectionQuality& quality) {
    if (!quality.mean) return nothing(kNoBox);
    return {quality.mean->coco, ""};
}

CategoryRecord category_record(const evaluation::Category& category,
                               const evaluation::CategoryQuality& strict,
                               const evaluation::CategoryQuality& tolerant) {
    CategoryRecord record{.name = category.name,
                          .boxes = strict.boxes,
                          .detections = strict.detections,
                          .hits = strict.hits};
    record.ap50 = record.voc_ap50 = record.ap10 = nothing("no test sample has such a box");
    if (strict.precision) {
        record.ap50 = {strict.precision->coco, ""};
        record.voc_ap50 = {strict.precision->voc_area, ""};
        record.ap10 = {tolerant.precision->coco, ""};
    }
    return record;
}

}  // namespace

void judge_detections(const evaluation::DetectionTruth& truth,
                      std::span<const evaluation::Detection> said, GroupResult& result) {
    result.quality =
        mean_of(evaluation::detection_quality(truth, said, evaluation::kScoreThreshold));
    result.quality_top_5 = nothing("detections have no Top-5");
}

void judge_fusion(const evaluation::Annotations& truth, std::span<const evaluation::Detection> said,
                  QualityRecord& quality) {
    const auto strict =
        evaluation::detection_quality(truth.truth, said, evaluation::kScoreThreshold);
    const auto tolerant =
        evaluation::detection_quality(truth.truth, said, evaluation::kTolerantThreshold);
    quality.ensemble = mean_of(strict);
    AveragePrecisionRecord metric;
    metric.ensemble_voc_ap50 = strict.mean ? Quantity{strict.mean->voc_area, ""} : nothing(kNoBox);
    metric.ensemble_ap10 = mean_of(tolerant);
    for (std::size_t index = 0; index < strict.categories.size(); ++index) {
        metric.categories.push_back(category_record(
            truth.categories[index], strict.categories[index], tolerant.categories[index]));
    }
    quality.metric = std::move(metric);
    const auto interval =
        evaluation::bootstrap_interval_95(truth.truth, said, evaluation::kScoreThreshold);
    quality.confidence_interval = interval_record(interval, kNoBox, "bootstrap over test samples");
}

IntervalRecord detectors_interval(comm::Communicator& ranks, const config::Config& config,
                                  const evaluation::DetectionTruth& truth,
                                  const DetectorMembers& members) {
    const evaluation::MemberDraws draws = evaluation::draw_members(members.all, config.run.seed);
    const std::string objection = evaluation::objection_to_draws(draws, truth.images);
    if (!objection.empty()) return members_interval_of(objection, std::nullopt);
    const auto interval =
        evaluation::bootstrap_detections(ranks, {members.mine, members.first, draws}, truth,
                                         evaluation::kScoreThreshold, fusion_of(config));
    return members_interval_of(interval ? "" : kNoBox, interval);
}

evaluation::FusionOptions fusion_of(const config::Config& config) {
    const bool fuses = config.bagging.aggregation == config::Aggregation::wbf;
    const double usual = fuses ? evaluation::kFusionOverlap : evaluation::kSuppressionOverlap;
    const double configured = config.detector.fusion_overlap;
    return {
        .merging = fuses ? evaluation::Merging::weighted_fusion : evaluation::Merging::suppression,
        .overlap = configured > 0 ? configured : usual,
        .lowest_score = config.detector.score_threshold,
        .limit = evaluation::kDetectionsPerImage};
}

}  // namespace hpcai::workloads
