// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <hpcai/base/error.hpp>
#include <hpcai/records/progress_record.hpp>

namespace hpcai::report {

/// The exit code of `hpcai500 status`. If all groups have ended and a group has stopped or all have
/// failed: internal if a group could not save its checkpoint, else watchdog if one failed and one
/// was `terminated`, else stopped or all_groups_failed. Otherwise, and while a program is running:
/// watchdog, because the files alone do not show whether the run continues or has died.
ExitCode exit_code_of(const RunProgress& run);

/// Returns true if the run is over: no program is known to run, and either all groups have ended
/// and no evaluation follows, or no group has sent a heartbeat for kSilenceSeconds.
bool is_over(const RunProgress& run);

/// Seconds without a heartbeat after which an unfinished run counts as dead: in general, and if its
/// directory is not locked. Some file systems lock per node, so another node may hold a lock.
inline constexpr std::int64_t kSilenceSeconds = 600;
inline constexpr std::int64_t kUnlockedSilenceSeconds = 30;

/// Seconds since the last heartbeat of any group, or since the start. Empty if all groups have
/// ended and no program is running, or if the time is unknown.
std::optional<std::int64_t> silence_seconds(const RunProgress& run);

/// A table with a row for each group, the reasons of failures and stops, and a line such as
/// STATUS STOPPED  groups=4 finished=1 stopped=3 directory=...
/// or UNSAVED, FAILED or UNFINISHED. The lines above it report a silence of kSilenceSeconds and the
/// command to resume a run that is over or whose lock is free. The command has a condition until no
/// group has sent a heartbeat for kUnlockedSilenceSeconds. Control characters are escaped.
std::string progress_table(const RunProgress& run);

}  // namespace hpcai::report
