// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/storage/file_lock.hpp>

namespace hpcai::results {

/// Keeps other programs out of a result directory until the lock, or this process, ends. Throws
/// Error(usage) where another has it; waits for that a second and in a Slurm job three minutes, as
/// long as file servers may keep the locks of a node that died. Where the file system has no locks,
/// standard error says so of an exclusive one.
std::shared_ptr<storage::FileLock> lock_directory(const std::filesystem::path& output,
                                                  storage::FileLock::Kind kind);

/// Whether a program holds the lock of the result directory now; nothing where that cannot be
/// known, as of one on NFS that this user may not write.
std::optional<bool> is_at_work(const std::filesystem::path& output);

/// Whether a program holds it alone, as `resume` does until it has moved a result out of its way.
bool is_being_taken_up(const std::filesystem::path& output);

/// Shares `lock`, which world rank 0 holds alone, with the leaders of all groups, because a run may
/// outlive its first rank. Returns the lock of this rank, null where it leads no group. Throws
/// Error(usage) on all ranks where another program takes the directory meanwhile. Collective.
std::shared_ptr<storage::FileLock> share_directory(const context::RunContext& context,
                                                   std::shared_ptr<storage::FileLock> lock,
                                                   comm::Communicator& everyone);

}  // namespace hpcai::results
