// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <hpcai/base/run_record.hpp>

namespace hpcai::report {

/// "VALID", "INVALID", "PARTIAL", "CUSTOM".
std::string_view word_of(Status status);

/// The exit code that `status` has by itself: 0 for valid and custom, 7 for partial, 9 for
/// invalid. An invalid run may have a more telling one, such as 5 when every group failed.
ExitCode exit_code_of(Status status);

/// The last line of a run, without a line break; stable, tools parse it:
/// RESULT VALID  workload=... M=2 P=2 FLOPS=1.234e+12 VFLOPS=1.198e+12 quality=0.7583 target=0.7630
/// A number that is not there is "n/a".
std::string result_line(const RunRecord& record);

/// What is printed at the end of a run and stored as `summary.txt`: the parameters and their
/// meaning, a table with a header, a row per group and one for the ensemble, a "reason: ..." line
/// each, result_line(). Control characters in texts become spaces, so none can fake a line.
std::string summary(const RunRecord& record);

}  // namespace hpcai::report
