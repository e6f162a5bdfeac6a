// SPDX-License-Identifier: Apache-2.0
#include <sstream>

#include <hpcai/models/make_model.hpp>
#include <hpcai/ops/box_math.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/workloads/probability_check.hpp>
#include <hpcai/workloads/probability_evaluator.hpp>
#include <hpcai/workloads/tasks.hpp>

#include "score_cells.hpp"

namespace hpcai::workloads {
namespace {

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
    std::vector<std::int32_t> labels_of(std::span<const std::int32_t> samples) const override {
        const data::SampleSet& set = *samples_.validation;
        const models::CellGrid grid = models::cell_grid(config_);
        std::vector<std::int32_t> labels;
        labels.reserve(samples.size() * static_cast<std::size_t>(grid.rows * grid.columns));
        std::vector<float> boxes(set.format().box_values());
        const ops::ImageBoxes image_boxes{boxes.data(), set.format().max_boxes,
                                          static_cast<int>(task_.classes)};
        for (std::size_t sample = 0; sample < samples.size(); ++sample) {
            const bool is_scored = samples[sample] >= 0;
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

/// Reads the stored class names. Unless there is one per class, adds a finding and resizes them.
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

}  // namespace

Workload segmentation() {
    return {config::Task::segmentation,
            MeanIouRecord{},
            kProbabilityFiles,
            new_evaluator<SegmentationEvaluator>,
            new_check<SegmentationCheck>,
            compare_cells};
}

}  // namespace hpcai::workloads
