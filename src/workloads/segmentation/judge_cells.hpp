// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/records/run_record.hpp>
#include <hpcai/workloads/probabilities.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::workloads {

/// Mean intersection over union of one member's cells. Throws as evaluation::count_cells does.
void judge_cells(const Probabilities& said, GroupResult& result);

/// The ensemble's quality with its interval, and each class's. Throws likewise.
void judge_cell_vote(const VotedProbabilities& said, std::int64_t cells_per_sample,
                     const std::vector<std::string>& class_names, QualityRecord& quality);

/// A paired bootstrap of two ensembles. Cells of a sample depend on one another, so that samples
/// are drawn.
QualityComparison compare_cells(const ComparedResults& results);

}  // namespace hpcai::workloads
