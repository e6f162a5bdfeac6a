// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <set>

#include "run_context.hpp"

namespace hpcai::benchmark {

/// Throws Error(usage) where `wanted` is there and not an empty directory.
void require_new_or_empty(const std::filesystem::path& wanted);

/// Makes the result directory: the last step of a start-up, so that a refused start leaves nothing
/// behind. In that of a run that is resumed a result, and the records of groups that have failed or
/// stopped, move to attempts/<n>/. Throws Error(usage), on all ranks, when the directory is not
/// empty (any more) or cannot be made. All leaders then share start.lock. Collective.
void make_result_directory(Start& start, comm::Communicator& everyone);

/// Records of groups that are in the way of another attempt: those that cannot be read or say of a
/// group that it finished, which has other predictions; or also those of groups that failed.
enum class StaleRecords { unreadable, unfinished };

/// Moves what was made of a run's end to attempts/<n>/, so that it can end again: a result, and
/// such records, but for those of groups whose files are known to be whole. Throws Error(usage).
void move_attempt_away(const Start& start, StaleRecords records,
                       const std::set<int>& whole_groups = {});

}  // namespace hpcai::benchmark
