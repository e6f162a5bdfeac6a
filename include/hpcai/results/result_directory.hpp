// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <set>

#include <hpcai/base/log.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/storage/file_lock.hpp>

namespace hpcai::results {

/// Throws Error(usage) if `output` exists and is not an empty directory.
void require_new_or_empty(const std::filesystem::path& output);

/// Creates the result directory as the last step of a launch, so that a rejected launch creates no
/// files. If a run is resumed, moves its result and the records of groups that failed or stopped to
/// attempts/<n>/. Returns the lock of the directory, which the leaders of all groups share; null on
/// other ranks. Rank 0 passes the `lock` of a resumed run. Collective. On all ranks, throws
/// Error(usage) if a new run's directory has files or cannot be made, Error(data) if a move fails.
std::shared_ptr<storage::FileLock> make_result_directory(const context::RunContext& context,
                                                         const LaunchRecord& launch,
                                                         std::shared_ptr<storage::FileLock> lock,
                                                         comm::Communicator& everyone);

/// Atomically replaces the symbolic link `latest` next to the directory of a new run, or of several
/// runs (run.repeat), by a link to that directory. Does nothing if the path of the directory has no
/// parent. Logs a warning on failure. Only rank 0 may call it.
void link_latest(const context::RunContext& context, Logger& log);

/// The group records that `resume` or `score` replaces. `unreadable`: damaged records, and records
/// of finished groups that contradict their files. `unfinished`: also records of failed groups.
enum class StaleRecords { unreadable, unfinished };

/// Moves the result of a run and its stale `records` to attempts/<n>/, so that the run can store a
/// new result. Keeps the records of `undamaged_groups`, which the caller has checked. Also removes
/// temporary files of a killed program. Throws Error(usage) if a folder cannot be created,
/// Error(data) if a file cannot be moved, or is a link or pipe.
void archive_attempt(const context::RunContext& context, StaleRecords records,
                     const std::set<int>& undamaged_groups = {});

}  // namespace hpcai::results
