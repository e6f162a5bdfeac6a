// SPDX-License-Identifier: Apache-2.0
#include "score_detections.hpp"

#include <hpcai/evaluation/average_precision.hpp>
#include <hpcai/workloads/tasks.hpp>

namespace hpcai::workloads {
namespace {

using evaluation::Detection;
using evaluation::Judgement;

constexpr const char* kNoBox = "no test sample has a box";

Quantity mean_of(const evaluation::DetectionQuality& quality) {
    if (!quality.mean) return no_value(kNoBox);
    return {quality.mean->coco, ""};
}

CategoryRecord category_record(const evaluation::Category& category,
                               const evaluation::CategoryQuality& strict,
                               const evaluation::CategoryQuality& tolerant) {
    CategoryRecord record{.name = category.name,
                          .boxes = strict.boxes,
                          .detections = strict.detections,
                          .hits = strict.hits};
    record.ap50 = record.voc_ap50 = record.ap10 = no_value("no labelled box has this category");
    if (strict.precision) {
        record.ap50 = {strict.precision->coco, ""};
        record.voc_ap50 = {strict.precision->voc_area, ""};
        record.ap10 = {tolerant.precision->coco, ""};
    }
    return record;
}

}  // namespace

void score_detections(const evaluation::DetectionTruth& truth,
                      std::span<const evaluation::Detection> detections, GroupResult& result) {
    result.quality =
        mean_of(evaluation::detection_quality(truth, detections, evaluation::kAp50Overlap));
    result.quality_top_5 = no_value("detections have no Top-5");
}

void score_fusion(const evaluation::Annotations& truth,
                  std::span<const evaluation::Detection> detections, QualityRecord& quality) {
    const auto strict =
        evaluation::detection_quality(truth.truth, detections, evaluation::kAp50Overlap);
    const auto tolerant =
        evaluation::detection_quality(truth.truth, detections, evaluation::kAp10Overlap);
    quality.ensemble = mean_of(strict);
    AveragePrecisionRecord metric;
    metric.ensemble_voc_ap50 = strict.mean ? Quantity{strict.mean->voc_area, ""} : no_value(kNoBox);
    metric.ensemble_ap10 = mean_of(tolerant);
    for (std::size_t index = 0; index < strict.categories.size(); ++index) {
        metric.categories.push_back(category_record(
            truth.categories[index], strict.categories[index], tolerant.categories[index]));
    }
    quality.metric = std::move(metric);
    const auto interval =
        evaluation::bootstrap_interval_95(truth.truth, detections, evaluation::kAp50Overlap);
    quality.confidence_interval = interval_record(interval, kNoBox, "bootstrap over test samples");
}

IntervalRecord detectors_interval(comm::Communicator& ranks, const config::Config& config,
                                  const evaluation::DetectionTruth& truth,
                                  const DetectorMembers& members) {
    const evaluation::MemberDraws draws = evaluation::draw_members(members.total, config.run.seed);
    const std::string reason = evaluation::reason_to_skip_draws(draws, truth.images);
    if (!reason.empty()) return members_interval_record(reason, std::nullopt);
    const auto interval =
        evaluation::bootstrap_detections(ranks, {members.local, members.first, draws}, truth,
                                         evaluation::kAp50Overlap, fusion_options(config));
    return members_interval_record(interval ? "" : kNoBox, interval);
}

evaluation::FusionOptions fusion_options(const config::Config& config) {
    const bool is_wbf = config.bagging.aggregation == config::Aggregation::wbf;
    const double fallback = is_wbf ? evaluation::kFusionOverlap : evaluation::kSuppressionOverlap;
    const double configured = config.detector.fusion_overlap;
    return {.method = is_wbf ? evaluation::FusionMethod::weighted_fusion
                             : evaluation::FusionMethod::suppression,
            .overlap = configured > 0 ? configured : fallback,
            .min_score = config.detector.score_threshold,
            .limit = evaluation::kDetectionsPerImage};
}

QualityComparison compare_detections(const ComparedResults& results) {
    const auto annotations =
        evaluation::read_coco_annotations(results.file_of_first(kDetectionFiles.labels));
    const auto read = [&](const std::filesystem::path& file) {
        return evaluation::read_coco_detections(file, annotations);
    };
    const auto first = read(results.file_of_first(kDetectionFiles.ensemble));
    const auto second = read(results.file_of_second(kDetectionFiles.ensemble));
    if (first == second) return {Judgement::same, "both have the same detections"};
    const auto interval =
        evaluation::paired_precision_interval_95(annotations.truth, first, second, kPairedDraws);
    if (!interval) return {Judgement::unclear, kNoBox};
    return comparison(*interval, annotations.truth.images);
}

}  // namespace hpcai::workloads
