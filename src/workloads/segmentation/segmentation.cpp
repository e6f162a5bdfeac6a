// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>

#include <hpcai/evaluation/segmentation.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/ops/box_math.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/workloads/probability_check.hpp>
#include <hpcai/workloads/probability_evaluator.hpp>
#include <hpcai/workloads/tasks.hpp>

namespace hpcai::workloads {
namespace {

using evaluation::Judgement;

constexpr const char* kNoCell = "no cell was scored";

evaluation::CellCounts count_cells(const Probabilities& predicted) {
    return evaluation::count_cells(predicted.values, predicted.labels, predicted.classes);
}

/// A file in evaluation/ with one class name per line, the background first.
constexpr const char* kClassNamesFile = "classes.txt";

ProbabilityTask segmentation_task(const config::Config& config,
                                  const std::vector<std::string>& class_names) {
    const models::CellGrid grid = models::cell_grid(config);
    const std::int64_t cells = grid.rows * grid.columns;
    return {cells, config.workload.classes + 1, score_cells,
            [cells, class_names](const VotedProbabilities& predicted, QualityRecord& quality) {
                score_cell_vote(predicted, cells, class_names, quality);
            }};
}

std::vector<std::string> class_names(const data::SampleSet& samples) {
    std::vector<std::string> names{"background"};
    for (int category = 1; category <= samples.classes(); ++category) {
        names.push_back(samples.class_name(category));
    }
    return names;
}

class SegmentationEvaluator final : public ProbabilityEvaluator {
public:
    SegmentationEvaluator(const config::Config& config, const data::SampleSets& samples)
        : ProbabilityEvaluator(config, samples,
                               segmentation_task(config, class_names(*samples.validation))) {}
    using ProbabilityEvaluator::store;

    void store(const EnsemblePredictions& ensemble,
               const std::filesystem::path& directory) const override {
        ProbabilityEvaluator::store(ensemble, directory);
        std::string names;
        for (const std::string& name : class_names(*samples_.validation)) names += name + "\n";
        storage::write_file_durably(directory / kClassNamesFile, names);
    }

private:
    /// Returns the labels of the cells of each sample, row by row.
    std::vector<std::int32_t> labels_of(std::span<const std::int32_t> by_sample) const override {
        const data::SampleSet& set = *samples_.validation;
        const models::CellGrid grid = models::cell_grid(config_);
        std::vector<std::int32_t> labels;
        labels.reserve(by_sample.size() * static_cast<std::size_t>(grid.rows * grid.columns));
        std::vector<float> boxes(set.format().box_values());
        const ops::ImageBoxes image_boxes{boxes.data(), set.format().max_boxes,
                                          static_cast<int>(task_.classes)};
        for (std::size_t sample = 0; sample < by_sample.size(); ++sample) {
            const bool is_scored = by_sample[sample] >= 0;
            if (is_scored) data::write_boxes(set.boxes(static_cast<std::uint32_t>(sample)), boxes);
            for (std::int64_t cell = 0; cell < grid.rows * grid.columns; ++cell) {
                labels.push_back(is_scored
                                     ? ops::cell_class(image_boxes, grid.pixels,
                                                       cell / grid.columns, cell % grid.columns)
                                     : -1);
            }
        }
        return labels;
    }
};

/// Reads the stored class names. If their number is wrong, adds a finding and resizes the list.
std::vector<std::string> read_class_names(const CheckedResult& result) {
    const std::string file = std::string("evaluation/") + kClassNamesFile;
    const auto expected = static_cast<std::size_t>(result.config.workload.classes) + 1;
    std::vector<std::string> names;
    const std::string text = result.inspector.read_text(file).value_or("");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) names.push_back(line);
    if (!text.empty() && text.back() != '\n') {
        result.inspector.report(file, "the last line has no newline");
    }
    if (names.size() != expected) {
        result.inspector.report(file, "number of lines is {}; must be {}, one per class",
                                names.size(), expected);
        names.resize(expected);
    }
    return names;
}

class SegmentationCheck final : public ProbabilityCheck {
public:
    explicit SegmentationCheck(const CheckedResult& result)
        : ProbabilityCheck(result, segmentation_task(result.config, read_class_names(result))) {}
};

/// Compares two ensembles by a paired bootstrap over samples, because cells are not independent.
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
                                std::span<const std::uint32_t> draws) {
        evaluation::CellCounts sum;
        for (std::size_t sample = 0; sample < samples.size(); ++sample) {
            if (draws[sample] > 0) evaluation::add_cells(samples[sample], draws[sample], sum);
        }
        return evaluation::mean_iou(sum);
    };
    return evaluation::image_interval_95(
        std::ssize(predicted_counts), [&](std::span<const std::uint32_t> draws) {
            std::optional<double> iou = iou_of_draw(predicted_counts, draws);
            if (!iou || other == nullptr) return iou;
            const auto other_iou = iou_of_draw(other_counts, draws);
            return other_iou ? std::optional(*other_iou - *iou) : std::nullopt;
        });
}

Workload segmentation() {
    return {config::Task::segmentation,
            MeanIouRecord{},
            kProbabilityFiles,
            new_evaluator<SegmentationEvaluator>,
            new_check<SegmentationCheck>,
            compare_cells};
}

}  // namespace hpcai::workloads
