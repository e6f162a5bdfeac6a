// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/error.hpp>
#include <hpcai/evaluation/segmentation.hpp>
#include <hpcai/evaluation/top_k.hpp>

namespace hpcai::evaluation {

CellCounts count_cells(std::span<const float> scores, std::span<const std::int32_t> labels,
                       std::int64_t classes) {
    const auto width = static_cast<std::size_t>(classes);
    ensure(classes > 0 && scores.size() == labels.size() * width,
           "{} scores for {} labels and {} classes", scores.size(), labels.size(), classes);
    CellCounts counts(width);
    for (std::size_t cell = 0; cell < labels.size(); ++cell) {
        const std::int32_t label = labels[cell];
        if (label == kPaddingLabel) continue;
        require(label >= 0 && label < classes, ExitCode::data,
                "cell {} has the label {}, expected 0 to {}", cell, label, classes - 1);
        ++counts[label].cells;
        const auto predicted = predicted_class(scores.subspan(cell * width, width));
        if (!predicted) continue;
        ClassCells& row = counts[*predicted];
        ++row.predicted;
        row.hits += *predicted == label;
    }
    return counts;
}

std::vector<CellCounts> count_samples(std::span<const float> scores,
                                      std::span<const std::int32_t> labels, std::int64_t classes,
                                      std::int64_t rows_per_sample) {
    const auto rows = static_cast<std::size_t>(rows_per_sample);
    const auto width = static_cast<std::size_t>(classes);
    ensure(rows > 0 && labels.size() % rows == 0 && scores.size() == labels.size() * width,
           "{} scores for {} labels in samples of {} cells", scores.size(), labels.size(), rows);
    std::vector<CellCounts> samples;
    for (std::size_t first = 0; first < labels.size(); first += rows) {
        samples.push_back(count_cells(scores.subspan(first * width, rows * width),
                                      labels.subspan(first, rows), classes));
    }
    return samples;
}

void add_cells(const CellCounts& counts, std::int64_t factor, CellCounts& sum) {
    sum.resize(counts.size());
    for (std::size_t index = 0; index < counts.size(); ++index) {
        sum[index].cells += factor * counts[index].cells;
        sum[index].predicted += factor * counts[index].predicted;
        sum[index].hits += factor * counts[index].hits;
    }
}

std::optional<double> intersection_over_union(const ClassCells& counts) {
    return accuracy(counts.hits, counts.cells + counts.predicted - counts.hits);
}

std::optional<double> mean_iou(const CellCounts& counts) {
    double sum = 0, classes = 0;
    for (const ClassCells& row : counts) {
        const auto iou = intersection_over_union(row);
        if (!iou) continue;
        sum += *iou;
        ++classes;
    }
    if (classes == 0) return std::nullopt;
    return sum / classes;
}

std::optional<double> pixel_accuracy(const CellCounts& counts) {
    std::int64_t cells = 0, hits = 0;
    for (const ClassCells& row : counts) {
        cells += row.cells;
        hits += row.hits;
    }
    return accuracy(hits, cells);
}

}  // namespace hpcai::evaluation
