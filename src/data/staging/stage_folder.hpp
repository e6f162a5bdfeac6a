// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <hpcai/storage/descriptor.hpp>

#include "pack_plan.hpp"

namespace hpcai::data::staging {

inline constexpr const char* kStageSchema = "hpcai500-stage/1";

/// The folder of this user's stage in `directory`.
std::filesystem::path stage_path(const std::filesystem::path& directory);

/// The folder of a stage, `hpcai500-stage-<user>` in the directory that the user named: this user's
/// alone, with a marker file, and locked as long as anybody uses it. What is removed from it is
/// what this program wrote: files with an index, files named as packs, and files on their way.
class StageFolder {
public:
    /// Makes the folder or opens the one that is there. Throws Error(usage) naming it when it can
    /// be neither: another user's, a link, open to others, or one without the marker. Of processes
    /// that make it at the same time, all have the same one.
    explicit StageFolder(const std::filesystem::path& directory);

    const std::filesystem::path& path() const { return path_; }
    /// Returns the folder of one of the sets of kSetNames.
    std::filesystem::path set_folder(const std::string& set) const { return path_ / set; }

    /// Locks, of the object: the kernel lifts them when its process ends, however it does. False
    /// when another has the folder alone, or at all. Throws Error(usage) where the file system has
    /// no locks.
    bool lock_alone();
    bool lock_shared();  // of a lock alone: nobody gets in between
    void unlock();

    /// Makes the set's folder and removes from it what `packs` does not plan, whole or not: all of
    /// an earlier stage. Returns which packs seem to be there, [pack] 1; their bytes are not looked
    /// at. Only while locked alone. Throws Error(usage) for a file in the place of a pack that this
    /// program cannot have written.
    std::vector<std::byte> prepare(const std::string& set, const std::vector<Pack>& packs);

    /// Bytes that this user can still write there.
    std::uint64_t free_bytes() const;

    /// Notes that so many ranks of the node run, and forgets what earlier ones left on its way.
    /// Only while locked alone. Throws Error(usage) when it cannot.
    void note_running(int node_ranks);
    /// Notes that one of them has completed its part. A full disk has room for that.
    void note_completed(int node_rank);
    bool all_completed() const;

    /// Removes all of the stage; what this program did not write stays, with the folders that hold
    /// it. Only while locked alone.
    void remove() noexcept;

private:
    void make_marker();
    bool lock(short type);
    /// Notes of running ranks and files on their way.
    void clear_notes() const;

    std::filesystem::path path_;
    storage::Descriptor folder_;
    storage::Descriptor marker_;
};

inline constexpr const char* kSetNames[] = {"training", "validation"};  // by Split

}  // namespace hpcai::data::staging
