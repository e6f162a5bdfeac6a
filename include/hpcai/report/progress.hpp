// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <hpcai/records/progress_record.hpp>

namespace hpcai::report {

/// What `hpcai500 status` exits with: stopped where groups have stopped and the others ended,
/// internal where one of these could not save its checkpoint, all_groups_failed where all have
/// failed, else, and while a program is at work, watchdog: the run is under way or has died, which
/// files alone cannot tell apart. It has died, too, where groups were `terminated` beside one that
/// failed.
ExitCode exit_code_of(const RunProgress& run);

/// Whether nothing more is to come of the run: no program is known to be at work, and either all
/// groups have ended, or none has said anything for kSilenceSeconds.
bool is_over(const RunProgress& run);

/// How long a run that is not over may say nothing before it is taken for dead, and where no
/// program holds its directory: the locks of some file systems are those of one node.
inline constexpr std::int64_t kSilenceSeconds = 600;
inline constexpr std::int64_t kUnlockedSilenceSeconds = 30;

/// Seconds since any group, or the program at its begin, has said anything; nothing where the run
/// is over by its files, or nothing tells.
std::optional<std::int64_t> silence_seconds(const RunProgress& run);

/// A table with a row for each group, the reasons of those that failed or stopped, and a line:
/// STATUS STOPPED  groups=4 finished=1 stopped=3 directory=...
/// with UNSAVED, FAILED or UNFINISHED in that place otherwise, and above it a word on a silence of
/// kSilenceSeconds and, of a run whose groups have ended, or that has said nothing for
/// kUnlockedSilenceSeconds while no program is at work, the command that goes on. Control
/// characters in texts are escaped.
std::string progress_table(const RunProgress& run);

}  // namespace hpcai::report
