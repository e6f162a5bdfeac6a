// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include <hpcai/config/config.hpp>
#include <hpcai/data/staging.hpp>
#include <hpcai/storage/file.hpp>

#include "pack_plan.hpp"

namespace hpcai::data::staging {

inline constexpr const char* kStageSchema = "hpcai500-stage/1";

/// Returns this user's staging folder in `directory`.
std::filesystem::path stage_path(const std::filesystem::path& directory);

/// The staging folder, `hpcai500-stage-<uid>` in the configured directory. It belongs to this
/// user, has a marker file, and is locked while in use. This class removes only files that this
/// program wrote: files with an index, files named like packs, and temporary files.
class StageFolder {
public:
    /// Creates or opens the folder. Throws Error(usage) naming the folder if it belongs to another
    /// user, is a link, is writable by other users, or has files but not this version's marker.
    /// Also throws if all users can replace files in `directory`. Several processes may create the
    /// folder at the same time.
    explicit StageFolder(const std::filesystem::path& directory);

    const std::filesystem::path& path() const { return path_; }

    /// Never block; the kernel releases the lock when the process ends. Return false if another
    /// object has an exclusive lock; lock_exclusive() also returns false if another object has a
    /// shared lock or has removed the folder. Throw Error(usage) if the file system has no locks.
    bool lock_exclusive();
    bool lock_shared();  // downgrades an exclusive lock atomically
    void unlock();

    /// Creates the subfolder of the set and removes all files of earlier runs that are not in
    /// `packs`. Returns, for each pack, 1 if its index and a file of the right size exist; does not
    /// compare bytes. Requires lock_exclusive(). Throws Error(usage) if a file that this program
    /// cannot have written has the name of a pack.
    std::vector<std::byte> prepare(const std::string& set, const std::vector<Pack>& packs);

    /// Returns the bytes that this user can still write to the folder.
    std::int64_t free_bytes() const;

    /// Removes old marks and temporary files, then creates a mark (file `running-<i>`) for each of
    /// `node_ranks` ranks. Requires lock_exclusive(). Throws Error(usage) on failure.
    void mark_running(int node_ranks);
    /// Removes the mark of a rank that has completed its part of the run. Needs no disk space.
    void mark_completed(int node_rank);
    bool all_completed() const;

    /// Removes the folder, except files that this program did not write and their folders.
    /// Requires lock_exclusive().
    void remove() noexcept;

private:
    void make_marker();
    bool lock(short type);
    /// Removes all marks and temporary files.
    void remove_marks() const;

    std::filesystem::path path_;
    storage::Descriptor folder_;
    storage::Descriptor marker_;
};

inline constexpr const char* kSetNames[] = {"training", "validation"};  // by Split

}  // namespace hpcai::data::staging

namespace hpcai::data {

struct StagingLock::State {
    staging::StageFolder folder;
    config::StagingCleanup cleanup;
    int node_rank;
    std::shared_ptr<std::atomic<std::int64_t>> lost_copies;
};

}  // namespace hpcai::data
