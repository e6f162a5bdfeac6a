// SPDX-License-Identifier: Apache-2.0
#include "html_metric.hpp"

#include <fmt/core.h>

#include <hpcai/base/units.hpp>

#include "sections.hpp"

namespace hpcai::report {
namespace {

constexpr std::size_t kUnfoldedRows = 30;

std::vector<OtherQuality> others(const TopAccuracyRecord& metric) {
    return {{"majority vote", metric.ensemble_majority}, {"out of bag", metric.out_of_bag}};
}

std::vector<OtherQuality> others(const AveragePrecisionRecord&) {
    return {};
}

std::vector<OtherQuality> others(const MeanIouRecord& metric) {
    return {{"majority vote", metric.ensemble_majority}};
}

std::vector<Fact> facts_of(const TopAccuracyRecord& metric) {
    return {{"out of bag", quantity(metric.out_of_bag, "{:.4f}"),
             fmt::format("on {} training samples", format_count(metric.out_of_bag_samples))},
            {"Top-5", quantity(metric.ensemble_top_5, "{:.4f}")}};
}

std::vector<Fact> facts_of(const AveragePrecisionRecord& metric) {
    return {{"VOC AP50", quantity(metric.ensemble_voc_ap50, "{:.4f}")},
            {"AP10", quantity(metric.ensemble_ap10, "{:.4f}")}};
}

std::vector<Fact> facts_of(const MeanIouRecord& metric) {
    return {{"pixel accuracy", quantity(metric.ensemble_pixel_accuracy, "{:.4f}")}};
}

Markup classes_of(const TopAccuracyRecord&, const Quantity&) {
    return {};
}

Markup classes_of(const AveragePrecisionRecord& metric, const Quantity& mean) {
    if (metric.categories.empty()) return {};
    Table rows;
    rows.caption = "What the ensemble finds of each kind of object";
    rows.columns = {left("category"), "boxes", "detections", "hits", "AP50", "VOC AP50", "AP10"};
    rows.unfolded = kUnfoldedRows;
    for (const CategoryRecord& one : metric.categories) {
        rows.rows.push_back(row(one.name, format_count(one.boxes), format_count(one.detections),
                                format_count(one.hits), quality_text(one.ap50),
                                quality_text(one.voc_ap50), quality_text(one.ap10)));
    }
    rows.totals.push_back(row("mean", "", "", "", quality_text(mean),
                              quality_text(metric.ensemble_voc_ap50),
                              quality_text(metric.ensemble_ap10)));
    return section("categories", "Categories", table(rows));
}

Markup classes_of(const MeanIouRecord& metric, const Quantity& mean) {
    if (metric.segments.empty()) return {};
    Table rows;
    rows.caption = "What the ensemble says of the cells of each class";
    rows.columns = {left("class"), "cells", "predicted", "hits", "IoU"};
    rows.unfolded = kUnfoldedRows;
    for (const SegmentRecord& one : metric.segments) {
        rows.rows.push_back(row(one.name, format_count(one.cells), format_count(one.predicted),
                                format_count(one.hits), quality_text(one.iou)));
    }
    rows.totals.push_back(row("mean", "", "", "", quality_text(mean)));
    return section("segments", "Classes", table(rows));
}

}  // namespace

std::vector<OtherQuality> other_qualities(const MetricRecord& metric) {
    return std::visit([](const auto& numbers) { return others(numbers); }, metric);
}

std::vector<Fact> metric_facts(const MetricRecord& metric) {
    return std::visit([](const auto& numbers) { return facts_of(numbers); }, metric);
}

Markup classes_section(const QualityRecord& quality) {
    return std::visit([&](const auto& numbers) { return classes_of(numbers, quality.ensemble); },
                      quality.metric);
}

}  // namespace hpcai::report
