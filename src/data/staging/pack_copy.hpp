// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <vector>

#include <hpcai/data/local_stage.hpp>
#include <hpcai/storage/descriptor.hpp>

#include "pack_plan.hpp"

namespace hpcai::data::staging {

/// Thrown to stop early, after other work has failed.
struct Stopped : std::exception {};

/// Returns the facts of the file at `path`, following links, without opening it.
FileFacts facts_of(const std::filesystem::path& path);
FileFacts facts_of(const storage::Descriptor& file);

/// Counts copied data, from many threads.
struct Traffic {
    std::atomic<std::uint64_t> written{0};   // bytes, to the staging folder
    std::atomic<std::uint64_t> verified{0};  // bytes of intact packs of an earlier run
    std::atomic<std::int64_t> left{0};       // files that could not be read and are not staged
};

/// Parameters that all copies of a set share.
struct Copying {
    const Source& source;
    bool is_packed;                // files that cannot be read may be omitted
    std::filesystem::path folder;  // of this set, in the staging folder
    const std::atomic<bool>& stop;
    Traffic& traffic;
};

/// Reads the whole pack and returns whether it is as planned. Removes a pack that is damaged or
/// lacks a file. Throws Stopped after copying.stop was set.
bool is_whole(const Copying& copying, const Pack& pack);

/// Copies the files of the pack into the folder. The pack gets its name when it is complete and
/// synced. A file that cannot be read leaves a hole if `is_packed`, and is an Error(data)
/// otherwise. Throws Error(data) naming a file that has changed since it was listed or differs from
/// the source's manifest, Error(usage) if the pack cannot be written, and Stopped like is_whole().
void copy_pack(const Copying& copying, const Pack& pack);

/// Opens `packs` of `source` in `folder`. The packs must be complete; source.path_of is not called.
/// `lost` counts samples whose copies become unusable.
std::shared_ptr<const StagedPictures> open_staged(const std::filesystem::path& folder,
                                                  const std::vector<Pack>& packs,
                                                  const Source& source,
                                                  std::shared_ptr<std::atomic<std::int64_t>> lost);

}  // namespace hpcai::data::staging
