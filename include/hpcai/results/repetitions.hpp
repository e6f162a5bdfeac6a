// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>

#include <hpcai/base/run_record.hpp>
#include <hpcai/context/run_context.hpp>

namespace hpcai::results {

/// How a run ended for a rank.
struct RunEnd {
    ExitCode code = ExitCode::ok;
    bool another = false;  // whether the next one of run.repeat follows
};

/// One run of several, seen by the leader that wrote its result.
struct FinishedRun {
    const RunRecord& record;
    const std::string& manifest;  // SHA-256
    bool all_answer = false;      // every rank is there for another run
};

/// Adds the run to repetitions.json. Another follows while there is one to make and all ranks
/// answer; behind the last the table goes to `out` and the code is the worst of all. Throws
/// Error(usage) or Error(data) where the file cannot be written or read.
RunEnd close_repetition(const context::RunContext& context, const FinishedRun& run,
                        std::ostream& out);

/// After a failure: writes into repetitions.json of `folder`, where it is there, why there are no
/// more runs, and the table to `out`. What goes wrong here is told to standard error.
void note_stop(const std::filesystem::path& folder, const std::string& why,
               std::ostream& out) noexcept;

}  // namespace hpcai::results
