// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <hpcai/records/run_record.hpp>

namespace hpcai::report {

/// Where a result directory keeps summary(). Its last line has the SHA-256 of the manifest, which
/// therefore does not list it.
inline constexpr const char* kSummaryName = "summary.txt";

/// The result in a line, without a line break; stable, tools parse it:
/// RESULT VALID  workload=... M=2 P=2 FLOPS=1.234e+12 VFLOPS=1.198e+12 quality=0.7583 target=0.7630
/// A number that is not there is "n/a".
std::string result_line(const RunRecord& record);

/// That line with " manifest=" and the SHA-256 of the result's manifest, which proves all of its
/// files, or "none" where none could be written: the line that a run ends with.
std::string result_line(const RunRecord& record, std::string_view manifest);

/// What is printed at the end of a run and stored as `summary.txt`: the parameters and their
/// meaning, a table with a header, a row per group and one for the ensemble, a "reason: ..." line
/// each, result_line(record, manifest). Control characters in texts become spaces, so none can fake
/// a line.
std::string summary(const RunRecord& record, std::string_view manifest);

}  // namespace hpcai::report
