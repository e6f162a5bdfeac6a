// SPDX-License-Identifier: Apache-2.0
#include "score_cells.hpp"

#include <algorithm>

#include <hpcai/evaluation/segmentation.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/workloads/tasks.hpp>

namespace hpcai::workloads {
namespace {

using evaluation::Judgement;

constexpr const char* kNoCell = "no cell was scored";

evaluation::CellCounts count_cells(const Probabilities& predicted) {
    return evaluation::count_cells(predicted.values, predicted.labels, predicted.classes);
}

}  // namespace

void score_cells(const Probabilities& predicted, GroupResult& result) {
    result.quality = value_or_reason(evaluation::mean_iou(count_cells(predicted)), kNoCell);
    result.quality_top_5 = no_value("segmentation workloads have no Top-5");
}

void score_cell_vote(const VotedProbabilities& predicted, std::int64_t cells_per_sample,
                     const std::vector<std::string>& class_names, QualityRecord& quality) {
    const evaluation::CellCounts counts = count_cells(predicted.aggregated());
    quality.ensemble = value_or_reason(evaluation::mean_iou(counts), kNoCell);
    MeanIouRecord metric;
    metric.ensemble_majority =
        value_or_reason(evaluation::mean_iou(count_cells(predicted.majority)), kNoCell);
    metric.ensemble_pixel_accuracy = value_or_reason(evaluation::pixel_accuracy(counts), kNoCell);
    for (std::size_t index = 0; index < counts.size(); ++index) {
        const evaluation::ClassCells& cells = counts[index];
        metric.segments.push_back(
            {class_names.at(index), cells.cells, cells.predicted, cells.hits,
             value_or_reason(evaluation::intersection_over_union(cells),
                             "no cell is labelled or predicted as this class")});
    }
    quality.metric = std::move(metric);
    const Quantity no_members =
        no_value("cells are not independent: there is no bootstrap over members");
    quality.members_interval = {no_members, no_members, 0.95, "none"};
    quality.confidence_interval =
        interval_record(cell_interval_95(predicted.aggregated(), cells_per_sample, nullptr),
                        kNoCell, "bootstrap over test samples");
}

std::optional<evaluation::Interval> cell_interval_95(const Probabilities& predicted,
                                                     std::int64_t cells_per_sample,
                                                     const Probabilities* other) {
    const auto counts_of = [&](const Probabilities& rows) {
        return evaluation::count_samples(rows.values, rows.labels, rows.classes, cells_per_sample);
    };
    const std::vector<evaluation::CellCounts> predicted_counts = counts_of(predicted);
    std::vector<evaluation::CellCounts> other_counts;
    if (other != nullptr) other_counts = counts_of(*other);
    const auto iou_of_draw = [](const std::vector<evaluation::CellCounts>& samples,
                                std::span<const std::uint32_t> times) {
        evaluation::CellCounts sum;
        for (std::size_t sample = 0; sample < samples.size(); ++sample) {
            if (times[sample] > 0) evaluation::add_cells(samples[sample], times[sample], sum);
        }
        return evaluation::mean_iou(sum);
    };
    return evaluation::image_interval_95(
        std::ssize(predicted_counts), [&](std::span<const std::uint32_t> times) {
            std::optional<double> iou = iou_of_draw(predicted_counts, times);
            if (!iou || other == nullptr) return iou;
            const auto other_iou = iou_of_draw(other_counts, times);
            return other_iou ? std::optional(*other_iou - *iou) : std::nullopt;
        });
}

QualityComparison compare_cells(const ComparedResults& results) {
    const models::CellGrid grid = models::cell_grid(results.config);
    const std::int64_t cells = grid.rows * grid.columns;
    const ComparedProbabilities all =
        read_probabilities(results, results.config.workload.classes + 1, cells);
    const Probabilities first = all.with_labels(all.first), second = all.with_labels(all.second);
    if (std::ranges::equal(first.values, second.values)) {
        return {Judgement::same, "both have the same probabilities"};
    }
    const auto interval = cell_interval_95(first, cells, &second);
    if (!interval) return {Judgement::unclear, kNoCell};
    return comparison(*interval, std::ssize(first.labels) / cells);
}

}  // namespace hpcai::workloads
