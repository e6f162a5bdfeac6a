// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/records/run_record.hpp>

/// The formats of `hpcai500 table`.
namespace hpcai::report {

struct TableRow {
    std::string directory;
    RunRecord record;
};

/// Returns csv_of_json() of the directories and records.
std::string csv_table(const std::vector<TableRow>& rows);

/// Returns the scores, quality and training time of all runs in the format of OpenMetrics 1.0,
/// which Prometheus reads. A missing number has no line.
std::string openmetrics_table(const std::vector<TableRow>& rows);

}  // namespace hpcai::report
