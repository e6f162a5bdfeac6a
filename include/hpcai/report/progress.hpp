// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/error.hpp>
#include <hpcai/records/progress_record.hpp>

namespace hpcai::report {

/// The exit code of `hpcai500 status`. It is watchdog if a program runs, if a group has not ended,
/// or if an evaluation is missing: files alone do not show whether the run continues or has died.
/// Otherwise it is internal if a checkpoint was not saved, else watchdog if groups failed and
/// others were terminated, else stopped if any stopped or was terminated, else all_groups_failed.
ExitCode exit_code_of(const RunProgress& run);

/// Returns true if there are groups and all have finished.
bool have_all_finished(const RunProgress& run);

/// Returns true if no program is known to hold the lock, and one of two conditions holds: all
/// groups have ended and no evaluation follows, or silence_seconds() is at least kSilenceSeconds.
bool is_over(const RunProgress& run);

/// Returns true if a program holds the lock, and a group has stopped or all have ended. The
/// program's processes are then about to end.
bool is_ending(const RunProgress& run);

/// Seconds without a heartbeat after which is_over() treats an unfinished run as dead.
inline constexpr std::int64_t kSilenceSeconds = 600;
/// The shorter limit of progress_table() if the lock is unknown or free. A lock that seems free is
/// not enough, because some file systems hide the locks of other nodes.
inline constexpr std::int64_t kUnlockedSilenceSeconds = 30;

/// Returns true if the lock is free and either the run was on this node, or no group has had a
/// heartbeat for kUnlockedSilenceSeconds. Returns false if the time of the last heartbeat is
/// unknown.
bool has_died(const RunProgress& run);

/// Returns true if progress_table() has a line for a known RunProgress::resume_step: exit_code_of()
/// is watchdog, and the run is over or has died.
bool shows_resume_step(const RunProgress& run);

/// Seconds since the last heartbeat of any group or, if that is later, since the launch began.
/// Empty for an unknown or future time, or if the run has ended and is not known to be locked.
std::optional<std::int64_t> silence_seconds(const RunProgress& run);

/// A table with a row for each group, the hosts of the leaders, the reasons of failures and stops,
/// and a last line for tools such as
/// STATUS STOPPED  groups=4 finished=1 stopped=3 directory=...
/// with STOPPED, UNSAVED, FAILED, UNFINISHED or, while a program holds the lock, RUNNING. If the
/// lock is unknown, RUNNING requires a heartbeat in the last kUnlockedSilenceSeconds. An ended run
/// is never RUNNING. The lines before STATUS report a silence of at least kSilenceSeconds and the
/// command to complete a run that is over or whose lock is free. If such a run is not over and has
/// not died, the command has the remark "unless another node runs it". If exit_code_of() is
/// stopped, the table shows terminated groups as stopped; if the run is over or has died, it shows
/// groups at work as interrupted. Breaks long lines, but not the table and the last line. Escapes
/// control characters.
std::string progress_table(RunProgress run);

}  // namespace hpcai::report
