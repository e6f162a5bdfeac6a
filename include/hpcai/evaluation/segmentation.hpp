// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <hpcai/evaluation/top_k.hpp>

/// How well cells are told apart.
namespace hpcai::evaluation {

/// Cells of one class.
struct ClassCells {
    std::int64_t cells = 0;      // that are of it
    std::int64_t predicted = 0;  // that are said to be
    std::int64_t hits = 0;       // of these, rightly
    bool operator==(const ClassCells&) const = default;
};

using CellCounts = std::vector<ClassCells>;  // [class]

/// Counts over `scores` (labels.size(), classes), row by row, by predicted_class(); a row with a
/// NaN is said to be of no class. A cell labelled kPaddingLabel is not counted. Throws Error(data)
/// for a label that is neither that nor in [0, classes), Error(internal) when the sizes do not fit.
CellCounts count_cells(std::span<const float> scores, std::span<const std::int32_t> labels,
                       std::int64_t classes);

/// Adds `more` to `sum`, so many times.
void add_cells(const CellCounts& more, std::int64_t times, CellCounts& sum);

/// Hits / (cells of it or said to be); nothing where there are none.
std::optional<double> intersection_over_union(const ClassCells& counts);

/// The mean intersection over union of the classes that have one (M. Everingham et al., IJCV 111
/// (2015) 98-136, section 4.2 of the segmentation task); nothing where none has.
std::optional<double> mean_iou(const CellCounts& counts);

/// The share of the cells that are right; nothing where there is none.
std::optional<double> pixel_accuracy(const CellCounts& counts);

/// The counts of each sample, which has so many rows of `scores`.
std::vector<CellCounts> count_samples(std::span<const float> scores,
                                      std::span<const std::int32_t> labels, std::int64_t classes,
                                      std::int64_t rows_per_sample);

}  // namespace hpcai::evaluation
