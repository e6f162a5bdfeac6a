// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/evaluation/average_precision.hpp>
#include <hpcai/evaluation/coco_json.hpp>
#include <hpcai/evaluation/detection_ensemble.hpp>
#include <hpcai/records/json.hpp>

#include "command.hpp"
#include "evaluate.hpp"

namespace hpcai::cli {
namespace {

using evaluation::Annotations;
using evaluation::AveragePrecision;
using evaluation::Detection;
using nlohmann::ordered_json;
using records::number_or_null;
using Lists = std::vector<std::vector<Detection>>;

struct DetectionResults {
    Annotations annotations;
    evaluation::DetectionQuality quality;  // at IoU 0.5
    evaluation::DetectionQuality iou_10;   // at IoU 0.1
    std::optional<evaluation::Interval> interval;
    std::vector<std::optional<double>> members;  // AP50 of each list
    std::optional<std::string> aggregation;      // absent for one list
};

evaluation::FusionOptions fusion(const EvaluateOptions& options) {
    evaluation::FusionOptions fusion_options;
    if (!options.aggregation.empty() && options.aggregation != "wbf") {
        require(options.aggregation == "nms", ExitCode::usage,
                "evaluate: --aggregation: expected wbf or nms, got {}",
                in_quotes(options.aggregation));
        fusion_options.method = evaluation::FusionMethod::suppression;
        fusion_options.overlap = evaluation::kSuppressionOverlap;
    }
    if (options.overlap.value_or(0) > 0) fusion_options.overlap = *options.overlap;
    fusion_options.min_score = options.lowest_score.value_or(fusion_options.min_score);
    return fusion_options;
}

std::vector<Detection> fuse(const EvaluateOptions& options, const Lists& lists,
                            std::int64_t images) {
    std::vector<evaluation::Member> members;
    for (std::size_t index = 0; index < lists.size(); ++index) {
        members.push_back({lists[index], options.weights.empty() ? 1 : options.weights[index]});
    }
    const auto communicator = comm::make_self_communicator();
    return evaluation::fuse_detections(*communicator, members, images, fusion(options));
}

void check_weights(const EvaluateOptions& options) {
    if (options.weights.empty()) return;
    require(options.aggregation != "nms", ExitCode::usage,
            "evaluate: --weights: expected with --aggregation wbf only");
    require(options.weights.size() == options.detections.size(), ExitCode::usage,
            "evaluate: --weights: expected {} numbers, one for each of --detections, got {}",
            options.detections.size(), options.weights.size());
}

std::optional<double> mean_in(const std::optional<AveragePrecision>& precision,
                              double AveragePrecision::*mean) {
    return precision ? std::optional((*precision).*mean) : std::nullopt;
}

std::optional<double> coco_mean(const evaluation::DetectionQuality& quality) {
    return mean_in(quality.mean, &AveragePrecision::coco);
}

DetectionResults compute_results(const EvaluateOptions& options) {
    fusion(options);  // throws for an unknown aggregation
    check_weights(options);
    DetectionResults results{.annotations = evaluation::read_coco_annotations(options.annotations)};
    const evaluation::DetectionTruth& truth = results.annotations.truth;
    Lists lists;
    for (const std::string& path : options.detections) {
        lists.push_back(evaluation::read_coco_detections(path, results.annotations));
        results.members.push_back(coco_mean(
            evaluation::detection_quality(truth, lists.back(), evaluation::kAp50Overlap)));
    }
    if (lists.size() > 1) {
        results.aggregation = options.aggregation.empty() ? "wbf" : options.aggregation;
        lists.front() = fuse(options, lists, truth.images);
    }
    const std::vector<Detection>& scored = lists.front();  // the fusion, or the only list
    results.quality = evaluation::detection_quality(truth, scored, evaluation::kAp50Overlap);
    results.iou_10 = evaluation::detection_quality(truth, scored, evaluation::kAp10Overlap);
    results.interval = evaluation::bootstrap_interval_95(truth, scored, evaluation::kAp50Overlap);
    return results;
}

std::optional<double> members_mean(const DetectionResults& results) {
    double sum = 0;
    for (const auto& member : results.members) {
        if (!member) return std::nullopt;
        sum += *member;
    }
    return sum / static_cast<double>(results.members.size());
}

/// Returns AP50, VOC area, VOC 2007 and AP10 of one row of the table.
std::string means_text(const std::optional<AveragePrecision>& iou_50,
                       const std::optional<AveragePrecision>& iou_10) {
    return fmt::format("  {:>7}  {:>8}  {:>8}  {:>7}\n",
                       number_text(mean_in(iou_50, &AveragePrecision::coco)),
                       number_text(mean_in(iou_50, &AveragePrecision::voc_area)),
                       number_text(mean_in(iou_50, &AveragePrecision::voc_2007)),
                       number_text(mean_in(iou_10, &AveragePrecision::coco)));
}

std::string category_name(const evaluation::Category& category) {
    return category.name.empty() ? std::to_string(category.id) : printable(category.name);
}

std::string table_of(const DetectionResults& results) {
    std::size_t width = 8;
    for (const auto& category : results.annotations.categories)
        width = std::max(width, category_name(category).size());
    std::string text =
        fmt::format("{:{}}  {:>9}  {:>10}  {:>9}  {:>7}  {:>8}  {:>8}  {:>7}\n", "category", width,
                    "boxes", "detections", "hits", "AP50", "VOC area", "VOC 2007", "AP10");
    for (std::size_t index = 0; index < results.annotations.categories.size(); ++index) {
        const evaluation::CategoryQuality& quality = results.quality.categories[index];
        text += fmt::format("{:{}}  {:>9}  {:>10}  {:>9}",
                            category_name(results.annotations.categories[index]), width,
                            format_count(quality.boxes), format_count(quality.detections),
                            format_count(quality.hits)) +
                means_text(quality.precision, results.iou_10.categories[index].precision);
    }
    return text + fmt::format("{:{}}  {:>9}  {:>10}  {:>9}", "mean", width, "", "", "") +
           means_text(results.quality.mean, results.iou_10.mean);
}

std::string members_text(const EvaluateOptions& options, const DetectionResults& results) {
    std::string text = "\nmember    AP50  file\n";
    for (std::size_t index = 0; index < results.members.size(); ++index) {
        text += fmt::format("{:6}  {:>6}  {}\n", index, number_text(results.members[index]),
                            printable(options.detections[index]));
    }
    return text + fmt::format("{:>6}  {:>6}\n", "mean", number_text(members_mean(results)));
}

std::string detections_text(const EvaluateOptions& options, const DetectionResults& results) {
    const evaluation::DetectionTruth& truth = results.annotations.truth;
    std::string text = fmt::format(
        "{} images, {} categories, {} boxes, {}\n"
        "quality {}  AP50: IoU 0.5, COCO's 101 recalls, up to {} detections per image and "
        "category\n",
        format_count(truth.images), format_count(truth.categories),
        format_count(std::ssize(truth.boxes)),
        results.aggregation
            ? fmt::format("{} models by {}", results.members.size(), *results.aggregation)
            : "one model",
        number_text(coco_mean(results.quality)), evaluation::kDetectionsPerImage);
    if (results.interval) {
        text += fmt::format("95 % interval {:.4f} to {:.4f} (bootstrap over images)\n",
                            results.interval->low, results.interval->high);
    }
    text += "\n" + table_of(results);
    return results.aggregation ? text + members_text(options, results) : text;
}

void add_means(ordered_json& target, const std::optional<AveragePrecision>& iou_50,
               const std::optional<AveragePrecision>& iou_10) {
    target["ap50"] = number_or_null({mean_in(iou_50, &AveragePrecision::coco), ""});
    target["ap50_voc_area"] = number_or_null({mean_in(iou_50, &AveragePrecision::voc_area), ""});
    target["ap50_voc_2007"] = number_or_null({mean_in(iou_50, &AveragePrecision::voc_2007), ""});
    target["ap10"] = number_or_null({mean_in(iou_10, &AveragePrecision::coco), ""});
    target["ap10_voc_area"] = number_or_null({mean_in(iou_10, &AveragePrecision::voc_area), ""});
}

ordered_json categories_json(const DetectionResults& results) {
    ordered_json list = ordered_json::array();
    for (std::size_t index = 0; index < results.annotations.categories.size(); ++index) {
        const evaluation::Category& category = results.annotations.categories[index];
        const evaluation::CategoryQuality& quality = results.quality.categories[index];
        ordered_json row{{"id", category.id},
                         {"name", category.name},
                         {"boxes", quality.boxes},
                         {"detections", quality.detections},
                         {"hits", quality.hits}};
        add_means(row, quality.precision, results.iou_10.categories[index].precision);
        list.push_back(std::move(row));
    }
    return list;
}

ordered_json detections_json(const EvaluateOptions& options, const DetectionResults& results) {
    const evaluation::DetectionTruth& truth = results.annotations.truth;
    ordered_json members = ordered_json::array();
    for (std::size_t index = 0; index < results.members.size(); ++index)
        members.push_back({{"file", options.detections[index]},
                           {"quality", number_or_null({results.members[index], ""})}});
    ordered_json document{{"schema", "hpcai500-evaluate/1"},
                          {"task", "object_detection"},
                          {"metric", "ap50"},
                          {"images", truth.images},
                          {"boxes", truth.boxes.size()},
                          {"aggregation", results.aggregation ? ordered_json(*results.aggregation)
                                                              : ordered_json(nullptr)},
                          {"quality", number_or_null({coco_mean(results.quality), ""})}};
    if (!results.quality.mean) document["quality_reason"] = "no annotated box is scored";
    document["confidence_interval"] =
        results.interval ? ordered_json{results.interval->low, results.interval->high}
                         : ordered_json(nullptr);
    add_means(document, results.quality.mean, results.iou_10.mean);
    document["members"] = std::move(members);
    document["members_mean"] = number_or_null({members_mean(results), ""});
    document["categories"] = categories_json(results);
    return document;
}

}  // namespace

EvaluationReport evaluate_detections(const EvaluateOptions& options) {
    const DetectionResults results = compute_results(options);
    return {detections_text(options, results), json_text(detections_json(options, results))};
}

}  // namespace hpcai::cli
