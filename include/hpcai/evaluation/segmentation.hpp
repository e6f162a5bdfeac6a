// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Quality of predicted cell classes. A cell is a square of pixels, with one row of scores.
namespace hpcai::evaluation {

/// Numbers of cells of one class.
struct ClassCells {
    std::int64_t cells = 0;      // with this label
    std::int64_t predicted = 0;  // predicted as this class
    std::int64_t hits = 0;       // predicted and labelled as this class
    bool operator==(const ClassCells&) const = default;
};

using CellCounts = std::vector<ClassCells>;  // [class]

/// Counts over `scores` (labels.size(), classes), row by row, by predicted_class(). A row with a
/// NaN has no predicted class. Cells with the label kPaddingLabel are not counted. Throws
/// Error(data) for other labels outside of [0, classes), Error(internal) if the sizes do not match.
CellCounts count_cells(std::span<const float> scores, std::span<const std::int32_t> labels,
                       std::int64_t classes);

/// Adds `counts`, multiplied by `factor`, to `sum`.
void add_cells(const CellCounts& counts, std::int64_t factor, CellCounts& sum);

/// Hits / (cells labelled or predicted as the class); nothing if there are no such cells.
std::optional<double> intersection_over_union(const ClassCells& counts);

/// Mean intersection over union of the classes with labelled or predicted cells (M. Everingham et
/// al., IJCV 111 (2015) 98-136, section 4.2, segmentation); nothing without such cells.
std::optional<double> mean_iou(const CellCounts& counts);

/// Fraction of cells whose class is predicted correctly; nothing without cells.
std::optional<double> pixel_accuracy(const CellCounts& counts);

/// Returns the counts of each sample, which has `rows_per_sample` rows of `scores`.
std::vector<CellCounts> count_samples(std::span<const float> scores,
                                      std::span<const std::int32_t> labels, std::int64_t classes,
                                      std::int64_t rows_per_sample);

}  // namespace hpcai::evaluation
