// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <hpcai/records/run_record.hpp>

namespace hpcai::report {

/// The file of summary() in a result directory. Its last line has the SHA-256 of the manifest, so
/// the manifest does not list this file.
inline constexpr const char* kSummaryName = "summary.txt";

/// Returns the result on one line, without a trailing newline, in a stable format for tools:
/// RESULT VALID  workload=... M=2 P=2 FLOPS=1.234e+12 VFLOPS=1.198e+12 quality=0.7583 target=0.7630
/// A missing number is "n/a".
std::string result_line(const RunRecord& record);

/// Returns the last line of a run: result_line(record), " manifest=" and the SHA-256 of the
/// manifest, which verifies all files of the result, or "none" if it could not be written.
std::string result_line(const RunRecord& record, std::string_view manifest);

/// Returns the values of result_line() as a JSON object. A missing number is null.
nlohmann::ordered_json result_json(const RunRecord& record, std::string_view manifest);

/// Returns the text that a run prints last and stores as `summary.txt`: the scores, a table with a
/// row for each group and the ensemble, details of quality, time and energy, the settings, a line
/// "reason: ..." for each reason, and result_line(record, manifest). Control characters in texts
/// become spaces, so that they cannot add a line.
std::string summary(const RunRecord& record, std::string_view manifest);

}  // namespace hpcai::report
