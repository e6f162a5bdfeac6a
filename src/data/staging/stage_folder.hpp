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
/// what this program wrote: packs that have their index, and files on their way.
class StageFolder {
public:
    /// Makes the folder or opens the one that is there. Throws Error(usage) naming it when it can
    /// be neither: another user's, a link, open to others, or one without the marker.
    explicit StageFolder(const std::filesystem::path& directory);

    const std::filesystem::path& path() const { return path_; }
    /// Of one of the sets of kSetNames.
    std::filesystem::path set_folder(const std::string& set) const { return path_ / set; }

    /// Locks. The kernel lifts a lock when its process ends, however it does.
    bool lock_alone();  // false when another process has it, alone or shared
    bool lock_shared();

    /// Makes the set's folder and removes from it what `packs` does not plan, whole or not: all of
    /// an earlier stage. Returns which packs seem to be there, [pack] 1; their bytes are not looked
    /// at. Only while locked alone. Throws Error(usage) for a file in the place of a pack that this
    /// program did not write.
    std::vector<std::byte> prepare(const std::string& set, const std::vector<Pack>& packs);

    /// Bytes that this user can still write there.
    std::uint64_t free_bytes() const;

    /// Notes that a rank of the node has completed its part of the run; prepare() forgets them.
    void note_completed(int node_rank);
    int completed() const;

    /// Removes all of the stage; what this program did not write stays, with the folders that hold
    /// it. Only while locked alone.
    void remove() noexcept;

private:
    void forget_completed() const;

    std::filesystem::path path_;
    storage::Descriptor folder_;
    storage::Descriptor marker_;
};

inline constexpr const char* kSetNames[] = {"training", "validation"};  // by Split

}  // namespace hpcai::data::staging
