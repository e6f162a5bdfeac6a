// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>

#include <hpcai/context/run_context.hpp>
#include <hpcai/records/repetitions_record.hpp>

namespace hpcai::results {

/// How a run ended on a rank.
struct RunEnd {
    ExitCode code = ExitCode::ok;
    bool has_next_run = false;  // whether another run of run.repeat follows
};

/// Returns the number of the first run without a result in `folder`, from run `number` on.
int next_repetition(const std::filesystem::path& folder, int number);

/// Writes repetitions.json with the runs before the first one without a result, and `reason` if
/// they are fewer than run.repeat. Returns its content. Throws Error(usage) if the file cannot be
/// written, Error(data) if a result cannot be read.
RepetitionsRecord list_repetitions(const std::filesystem::path& folder, const std::string& reason);

/// Calls list_repetitions() after a run. Another run follows if run.repeat requests one and no rank
/// is dead or hangs (`all_answer`). After the last run, prints the table of all runs to `out`, or
/// an event if run.progress is json. Then returns the worst exit code of all runs.
RunEnd close_repetition(const context::RunContext& context, bool all_answer, std::ostream& out);

/// Stores in repetitions.json of `folder`, if that exists, why no more runs follow, and prints as
/// close_repetition() does. Call it after a failure. Reports its own errors on standard error.
void record_stop(const std::filesystem::path& folder, const std::string& reason,
                 const config::Config& config, std::ostream& out) noexcept;

}  // namespace hpcai::results
