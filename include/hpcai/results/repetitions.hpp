// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>

#include <hpcai/context/run_context.hpp>
#include <hpcai/records/run_record.hpp>

namespace hpcai::results {

/// How a run ended on a rank.
struct RunEnd {
    ExitCode code = ExitCode::ok;
    bool has_next_run = false;  // whether another run of run.repeat follows
};

/// Adds a finished run to repetitions.json. `manifest` is the SHA-256 of the run's manifest.
/// Another run follows if run.repeat requests one and every rank answered (`all_answer`).
/// After the last run, prints the table to `out` and returns the worst exit code of all runs.
/// Throws Error(usage) if the file cannot be written, Error(data) if it cannot be read.
RunEnd close_repetition(const context::RunContext& context, const RunRecord& run,
                        const std::string& manifest, bool all_answer, std::ostream& out);

/// Stores in repetitions.json of `folder`, if that exists, why no more runs follow, and prints the
/// table to `out`. Call it after a failure. Reports its own errors on standard error.
void record_stop(const std::filesystem::path& folder, const std::string& reason,
                 std::ostream& out) noexcept;

}  // namespace hpcai::results
