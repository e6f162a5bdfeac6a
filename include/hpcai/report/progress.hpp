// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <hpcai/base/progress_record.hpp>

namespace hpcai::report {

/// Where a group says how far it is, in its directory.
inline constexpr const char* kProgressName = "progress.json";

/// The text of `groups/<m>/progress.json`; as to_json of a RunRecord.
std::string to_json(const ProgressRecord& progress);

/// The record in such a text; `name` stands in messages. Throws Error(data) as from_json of a
/// RunRecord does.
ProgressRecord progress_from_json(std::string_view text, std::string_view name);

/// "training", "evaluating", "finished", "failed", "stopped".
std::string_view word_of(ProgressState state);

/// What `hpcai500 status` exits with: stopped where groups have stopped and the others finished,
/// all_groups_failed where all have failed, else watchdog: the run is under way or has died, which
/// files cannot tell apart.
ExitCode exit_code_of(const RunProgress& run);

/// A table with a row for each group, the reasons of those that failed or stopped, and a line:
/// STATUS STOPPED  groups=4 finished=1 stopped=3 directory=...
/// with FAILED or UNFINISHED in that place otherwise. Control characters in texts are escaped.
std::string progress_table(const RunProgress& run);

}  // namespace hpcai::report
