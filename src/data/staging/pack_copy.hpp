// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>

#include <hpcai/storage/descriptor.hpp>

#include "pack_plan.hpp"

namespace hpcai::data::staging {

/// Thrown when other work has failed, so that going on is of no use.
struct Stopped : std::exception {};

/// Returns the facts of the file that `path` leads to, without opening it.
FileFacts facts_of(const std::filesystem::path& path);
FileFacts facts_of(const storage::Descriptor& file);

/// Counts what is moved, from many threads.
struct Traffic {
    std::atomic<std::uint64_t> written{0};   // bytes, to the stage
    std::atomic<std::uint64_t> verified{0};  // bytes, that were there and are sound
    std::atomic<std::int64_t> left{0};       // files that could not be read
};

/// What copies of one set have in common.
struct Copying {
    const Source& source;
    bool is_packed;                // files that cannot be read may stay where they are
    std::filesystem::path folder;  // of the stage, for this set
    const std::atomic<bool>& stop;
    Traffic& traffic;
};

/// Whether the pack is in the folder as planned, each byte of it: reads it all. A pack that is not
/// sound, or that lacks a file, is removed. Throws Stopped.
bool is_whole(const Copying& copying, const Pack& pack);

/// Copies the pack's files into the folder. It has its name when it is complete and on the disk.
/// A file that cannot be read leaves a hole in it where `is_packed`. Throws Error(data) naming a
/// file that cannot be read otherwise, is not what the folder said it is, changes meanwhile or
/// differs from the source's manifest; Error(usage) when the pack cannot be written; Stopped.
void copy_pack(const Copying& copying, const Pack& pack);

}  // namespace hpcai::data::staging
