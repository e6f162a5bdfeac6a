// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>

#include <hpcai/context/run_context.hpp>
#include <hpcai/records/run_record.hpp>

namespace hpcai::results {

/// How a run ended for a rank.
struct RunEnd {
    ExitCode code = ExitCode::ok;
    bool has_next_run = false;  // whether another run of run.repeat follows
};

/// Adds a finished run to repetitions.json. `manifest` is the SHA-256 of its manifest. Another run
/// follows if some are left and all ranks answer. After the last run prints the table to `out` and
/// returns the worst exit code of all. Throws Error(usage) or Error(data) if the file cannot be
/// written or read.
RunEnd close_repetition(const context::RunContext& context, const RunRecord& run,
                        const std::string& manifest, bool all_answer, std::ostream& out);

/// Records after a failure in repetitions.json of `folder`, if it exists, why no more runs follow,
/// and prints the table to `out`. Reports its own errors on standard error.
void record_stop(const std::filesystem::path& folder, const std::string& why,
                 std::ostream& out) noexcept;

}  // namespace hpcai::results
