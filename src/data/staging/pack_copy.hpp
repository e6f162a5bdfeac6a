// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>

#include <hpcai/data/staging.hpp>
#include <hpcai/storage/file.hpp>

#include "pack_plan.hpp"

namespace hpcai::data::staging {

inline constexpr const char* kIndexSuffix = ".index";
inline constexpr const char* kIndexSchema = "hpcai500-pack/1";

/// The contents of `<pack>.index`. The index is written before the pack is renamed to its final
/// name, so a pack with an index was written by this program.
struct PackIndex {
    std::string fingerprint;
    std::int64_t bytes = 0;
    std::vector<std::string> digests;  // SHA-256 of each file; empty if it could not be read

    /// Returns whether the index belongs to `pack`. Does not hash the files.
    bool matches(const Pack& pack) const {
        return fingerprint == pack.fingerprint && bytes == pack.bytes &&
               digests.size() == pack.files.size();
    }
    bool is_complete() const {
        return std::ranges::none_of(digests, [](const auto& digest) { return digest.empty(); });
    }
};

std::filesystem::path index_path(const std::filesystem::path& pack);

/// Writes the index durably. Throws Error(usage) when it cannot be written.
void write_index(const std::filesystem::path& pack, const PackIndex& index);

/// Returns the index of the pack, or nothing if it is missing or invalid.
std::optional<PackIndex> read_index(const std::filesystem::path& pack);

/// Thrown by a copy that stops because another copy has failed.
struct Stopped : std::exception {};

/// Return the metadata of a file. The function with a path follows links, like stat().
FileMetadata read_metadata(const std::filesystem::path& path);
FileMetadata read_metadata(const storage::Descriptor& file);

/// Returns the size of a sample and the modification time of the tar file that contains it; a size
/// of -1 if the tar file ends before the sample does.
FileMetadata read_metadata(const SampleIndex& packed, std::uint32_t sample);

/// Totals of all copies of this rank, updated by many threads.
struct CopyCounters {
    std::atomic<std::int64_t> written_bytes{0};     // to the staging folder
    std::atomic<std::int64_t> verified_bytes{0};    // in intact packs of an earlier run
    std::atomic<std::int64_t> unreadable_files{0};  // source files that are not staged
};

/// Parameters that all copies of a set share.
struct CopyContext {
    const Source& source;
    bool has_pictures;             // true: images, omitted if unreadable; false: other files
    std::filesystem::path folder;  // of this set, in the staging folder
    const std::atomic<bool>& stop;
    CopyCounters& counters;
};

/// Reads an existing pack and returns whether it has all files with the right digests; if not,
/// removes it. Throws Stopped after context.stop was set.
bool verify_or_remove(const CopyContext& context, const Pack& pack);

/// Copies the files of the pack into the folder. The pack is renamed to its final name when it is
/// complete and synced. With `has_pictures`, the range of an unreadable file stays empty; else
/// throws Error(data) naming it. Throws Error(data) also for a file that changed since it was
/// listed or differs from its digest; Error(usage) if the pack cannot be written; and Stopped.
void copy_pack(const CopyContext& context, const Pack& pack);

/// Opens the complete `packs` of `source` in `folder`. Does not call source.path_of. Each sample
/// whose copy cannot be read or has another SHA-256 increments `lost_copies`.
std::shared_ptr<const StagedPictures> open_staged(
    const std::filesystem::path& folder, const std::vector<Pack>& packs, const Source& source,
    std::shared_ptr<std::atomic<std::int64_t>> lost_copies);

}  // namespace hpcai::data::staging
