// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <hpcai/base/error.hpp>
#include <hpcai/records/progress_record.hpp>

namespace hpcai::report {

/// The exit code of `hpcai500 status`: stopped if groups have stopped and the others ended,
/// internal if one of these could not save its checkpoint, all_groups_failed if all have failed.
/// Otherwise, and while a program is running, watchdog: the run continues or has died, which files
/// alone do not show. A run with a failed group and `terminated` ones has died.
ExitCode exit_code_of(const RunProgress& run);

/// Returns true if the run is over: no program is known to run, and either all groups have ended or
/// none has shown a sign of life for kSilenceSeconds.
bool is_over(const RunProgress& run);

/// The silence after which a run that is not over counts as dead, and the one if no program holds
/// the lock of its directory, because some file systems lock per node.
inline constexpr std::int64_t kSilenceSeconds = 600;
inline constexpr std::int64_t kUnlockedSilenceSeconds = 30;

/// Seconds since the last sign of life of any group, or since the start; nothing if the run is over
/// by its files or the time is unknown.
std::optional<std::int64_t> silence_seconds(const RunProgress& run);

/// A table with a row for each group, the reasons of failures and stops, and a line such as
/// STATUS STOPPED  groups=4 finished=1 stopped=3 directory=...
/// or UNSAVED, FAILED or UNFINISHED. Above it are a remark on a silence of kSilenceSeconds, and the
/// command to resume a run whose groups have ended, or which had no sign of life for
/// kUnlockedSilenceSeconds while no program runs. Control characters in texts are escaped.
std::string progress_table(const RunProgress& run);

}  // namespace hpcai::report
