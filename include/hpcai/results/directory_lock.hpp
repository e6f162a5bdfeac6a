// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/storage/file_lock.hpp>

namespace hpcai::results {

/// Locks a result directory against other programs until the lock or this process ends. Throws
/// Error(usage) if a lock of another program prevents it for one second, or in a batch job for
/// three minutes: a file server may keep a dead node's locks for two minutes. Warns on standard
/// error if `kind` is exclusive and the file system has no locks.
std::shared_ptr<storage::FileLock> lock_directory(const std::filesystem::path& output,
                                                  storage::FileLock::Kind kind);

/// Returns whether a program holds the lock of the result directory; nullopt if that is unknown,
/// for example on NFS without write permission.
std::optional<bool> is_locked(const std::filesystem::path& output);

/// Returns whether a program holds an exclusive lock, as `resume` does until it has moved an old
/// result away.
bool is_being_resumed(const std::filesystem::path& output);

/// Shares the exclusive `lock` of world rank 0 with the leaders of all groups, because a run may
/// outlive its first rank. Returns the lock of this rank, or null if it leads no group. Throws
/// Error(usage) on all ranks if another program is faster to lock the directory. Collective.
std::shared_ptr<storage::FileLock> share_directory(const context::RunContext& context,
                                                   std::shared_ptr<storage::FileLock> lock,
                                                   comm::Communicator& everyone);

}  // namespace hpcai::results
