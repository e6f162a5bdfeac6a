// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/records/run_record.hpp>
#include <hpcai/workloads/probabilities.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::workloads {

/// Computes the mean intersection over union of one member's cells. Throws as
/// evaluation::count_cells does.
void score_cells(const Probabilities& predicted, GroupResult& result);

/// Computes the ensemble's quality, its interval and each class's quality. Throws as
/// evaluation::count_cells does.
void score_cell_vote(const VotedProbabilities& predicted, std::int64_t cells_per_sample,
                     const std::vector<std::string>& class_names, QualityRecord& quality);

/// Compares two ensembles by a paired bootstrap over samples, because the cells of a sample are not
/// independent.
QualityComparison compare_cells(const ComparedResults& results);

}  // namespace hpcai::workloads
