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

#include "command.hpp"
#include "evaluate.hpp"

namespace hpcai::cli {
namespace {

using evaluation::Annotations;
using evaluation::AveragePrecision;
using evaluation::Detection;
using nlohmann::ordered_json;
using Lists = std::vector<std::vector<Detection>>;

struct Findings {
    Annotations annotations;
    evaluation::DetectionQuality quality;   // at IoU 0.5
    evaluation::DetectionQuality tolerant;  // at IoU 0.1
    std::optional<evaluation::Interval> interval;
    std::vector<std::optional<double>> members;
    std::optional<std::string> aggregation;  // absent for one list
};

evaluation::FusionOptions fusion(const EvaluateOptions& options) {
    evaluation::FusionOptions wanted;
    if (!options.aggregation.empty() && options.aggregation != "wbf") {
        require(options.aggregation == "nms", ExitCode::usage,
                "evaluate: --aggregation: expected wbf or nms, got {}",
                in_quotes(options.aggregation));
        wanted.method = evaluation::FusionMethod::suppression;
        wanted.overlap = evaluation::kSuppressionOverlap;
    }
    if (options.overlap.value_or(0) > 0) wanted.overlap = *options.overlap;
    wanted.min_score = options.lowest_score.value_or(wanted.min_score);
    return wanted;
}

std::vector<Detection> fused(const EvaluateOptions& options, const Lists& lists,
                             std::int64_t images) {
    std::vector<evaluation::Member> members;
    for (std::size_t index = 0; index < lists.size(); ++index) {
        members.push_back({lists[index], options.weights.empty() ? 1 : options.weights[index]});
    }
    const auto alone = comm::make_self_communicator();
    return evaluation::fuse_detections(*alone, members, images, fusion(options));
}

void check_weights(const EvaluateOptions& options) {
    if (options.weights.empty()) return;
    require(options.aggregation != "nms", ExitCode::usage,
            "evaluate: --weights: expected with --aggregation wbf only");
    require(options.weights.size() == options.detections.size(), ExitCode::usage,
            "evaluate: --weights: expected {} numbers, one for each of --detections, got {}",
            options.detections.size(), options.weights.size());
}

std::optional<double> coco_mean(const evaluation::DetectionQuality& quality) {
    return quality.mean ? std::optional(quality.mean->coco) : std::nullopt;
}

Findings findings_of(const EvaluateOptions& options) {
    fusion(options);
    check_weights(options);
    Findings findings{.annotations = evaluation::read_coco_annotations(options.annotations)};
    const evaluation::DetectionTruth& truth = findings.annotations.truth;
    Lists lists;
    for (const std::string& path : options.detections) {
        lists.push_back(evaluation::read_coco_detections(path, findings.annotations));
        findings.members.push_back(coco_mean(
            evaluation::detection_quality(truth, lists.back(), evaluation::kScoreThreshold)));
    }
    if (lists.size() > 1) {
        findings.aggregation = options.aggregation.empty() ? "wbf" : options.aggregation;
        lists.front() = fused(options, lists, truth.images);
    }
    const std::vector<Detection>& scored = lists.front();
    findings.quality = evaluation::detection_quality(truth, scored, evaluation::kScoreThreshold);
    findings.tolerant =
        evaluation::detection_quality(truth, scored, evaluation::kTolerantThreshold);
    findings.interval =
        evaluation::bootstrap_interval_95(truth, scored, evaluation::kScoreThreshold);
    return findings;
}

std::optional<double> members_mean(const Findings& findings) {
    double sum = 0;
    for (const auto& member : findings.members) {
        if (!member) return std::nullopt;
        sum += *member;
    }
    return sum / static_cast<double>(findings.members.size());
}

/// AP50, VOC area, VOC 2007 and AP10 of one row of the table.
std::string means_text(const std::optional<AveragePrecision>& half,
                       const std::optional<AveragePrecision>& tolerant) {
    const auto of = [](const std::optional<AveragePrecision>& precision,
                       double AveragePrecision::*mean) {
        return number_text(precision ? std::optional((*precision).*mean) : std::nullopt);
    };
    return fmt::format("  {:>7}  {:>8}  {:>8}  {:>7}\n", of(half, &AveragePrecision::coco),
                       of(half, &AveragePrecision::voc_area), of(half, &AveragePrecision::voc_2007),
                       of(tolerant, &AveragePrecision::coco));
}

std::string category_name(const evaluation::Category& category) {
    return category.name.empty() ? std::to_string(category.id) : printable(category.name);
}

std::string table_of(const Findings& findings) {
    std::size_t width = 8;
    for (const auto& category : findings.annotations.categories) {
        width = std::max(width, category_name(category).size());
    }
    std::string text =
        fmt::format("{:{}}  {:>9}  {:>10}  {:>9}  {:>7}  {:>8}  {:>8}  {:>7}\n", "category", width,
                    "boxes", "detections", "hits", "AP50", "VOC area", "VOC 2007", "AP10");
    for (std::size_t index = 0; index < findings.annotations.categories.size(); ++index) {
        const evaluation::CategoryQuality& one = findings.quality.categories[index];
        text += fmt::format("{:{}}  {:>9}  {:>10}  {:>9}",
                            category_name(findings.annotations.categories[index]), width,
                            format_count(one.boxes), format_count(one.detections),
                            format_count(one.hits)) +
                means_text(one.precision, findings.tolerant.categories[index].precision);
    }
    return text + fmt::format("{:{}}  {:>9}  {:>10}  {:>9}", "mean", width, "", "", "") +
           means_text(findings.quality.mean, findings.tolerant.mean);
}

std::string members_text(const EvaluateOptions& options, const Findings& findings) {
    std::string text = "\nmember    AP50  file\n";
    for (std::size_t index = 0; index < findings.members.size(); ++index) {
        text += fmt::format("{:6}  {:>6}  {}\n", index, number_text(findings.members[index]),
                            printable(options.detections[index]));
    }
    return text + fmt::format("{:>6}  {:>6}\n", "mean", number_text(members_mean(findings)));
}

std::string detections_text(const EvaluateOptions& options, const Findings& findings) {
    const evaluation::DetectionTruth& truth = findings.annotations.truth;
    std::string text = fmt::format(
        "{} images, {} categories, {} boxes, {}\n"
        "quality {}  AP50: IoU 0.5, COCO's 101 recalls, {} detections of an image and category\n",
        format_count(truth.images), format_count(truth.categories),
        format_count(std::ssize(truth.boxes)),
        findings.aggregation
            ? fmt::format("{} models by {}", findings.members.size(), *findings.aggregation)
            : "one model",
        number_text(coco_mean(findings.quality)), evaluation::kDetectionsPerImage);
    if (findings.interval) {
        text += fmt::format("95 % interval {:.4f} to {:.4f} (bootstrap over images)\n",
                            findings.interval->low, findings.interval->high);
    }
    text += "\n" + table_of(findings);
    return findings.aggregation ? text + members_text(options, findings) : text;
}

void add_means(ordered_json& target, const std::optional<AveragePrecision>& half,
               const std::optional<AveragePrecision>& tolerant) {
    const auto add = [&](const char* key, const std::optional<AveragePrecision>& from,
                         double AveragePrecision::*mean) {
        target[key] = from ? ordered_json((*from).*mean) : ordered_json(nullptr);
    };
    add("ap50", half, &AveragePrecision::coco);
    add("ap50_voc_area", half, &AveragePrecision::voc_area);
    add("ap50_voc_2007", half, &AveragePrecision::voc_2007);
    add("ap10", tolerant, &AveragePrecision::coco);
    add("ap10_voc_area", tolerant, &AveragePrecision::voc_area);
}

ordered_json categories_json(const Findings& findings) {
    ordered_json list = ordered_json::array();
    for (std::size_t index = 0; index < findings.annotations.categories.size(); ++index) {
        const evaluation::Category& category = findings.annotations.categories[index];
        const evaluation::CategoryQuality& one = findings.quality.categories[index];
        ordered_json row{{"id", category.id},
                         {"name", category.name},
                         {"boxes", one.boxes},
                         {"detections", one.detections},
                         {"hits", one.hits}};
        add_means(row, one.precision, findings.tolerant.categories[index].precision);
        list.push_back(std::move(row));
    }
    return list;
}

ordered_json detections_json(const EvaluateOptions& options, const Findings& findings) {
    const evaluation::DetectionTruth& truth = findings.annotations.truth;
    ordered_json members = ordered_json::array();
    for (std::size_t index = 0; index < findings.members.size(); ++index) {
        members.push_back({{"file", options.detections[index]},
                           {"quality", number_json(findings.members[index])}});
    }
    ordered_json document{{"schema", "hpcai500-evaluate/1"},
                          {"task", "object_detection"},
                          {"metric", "ap50"},
                          {"images", truth.images},
                          {"boxes", truth.boxes.size()},
                          {"aggregation", findings.aggregation ? ordered_json(*findings.aggregation)
                                                               : ordered_json(nullptr)},
                          {"quality", number_json(coco_mean(findings.quality))}};
    if (!findings.quality.mean) document["quality_reason"] = "no box to find";
    document["confidence_interval"] =
        findings.interval ? ordered_json{findings.interval->low, findings.interval->high}
                          : ordered_json(nullptr);
    add_means(document, findings.quality.mean, findings.tolerant.mean);
    document["members"] = std::move(members);
    document["members_mean"] = number_json(members_mean(findings));
    document["categories"] = categories_json(findings);
    return document;
}

}  // namespace

EvaluationReport evaluate_detections(const EvaluateOptions& options) {
    const Findings findings = findings_of(options);
    return {detections_text(options, findings), json_text(detections_json(options, findings))};
}

}  // namespace hpcai::cli
