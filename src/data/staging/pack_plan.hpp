// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

/// Which files of a source go into which file of a stage: pure arithmetic, so that all ranks of a
/// node know it without asking.
namespace hpcai::data::staging {

/// What a file's folder says of it.
struct FileFacts {
    std::int64_t bytes = -1;  // -1: no regular file that can be read
    std::int64_t modified_seconds = 0;
    std::int64_t modified_nanoseconds = 0;  // beyond these

    bool operator==(const FileFacts&) const = default;
};

/// Numbered files below a folder of the shared file system.
struct Source {
    std::filesystem::path root;
    std::uint32_t files = 0;
    std::function<std::string(std::uint32_t)> path_of;        // relative to root
    std::vector<FileFacts> facts;                             // by file
    std::map<std::string, std::string, std::less<>> digests;  // that its manifest lists, by path
    bool has_manifest = false;

    std::filesystem::path full_path(std::uint32_t file) const { return root / path_of(file); }
};

/// One file of a stage: files of the source, one after the other.
struct Pack {
    std::string name;
    std::vector<std::uint32_t> files;
    std::uint64_t bytes = 0;
    std::string fingerprint;  // SHA-256 of root, paths, sizes and times of modification
};

/// The `needed` files (1, by number) in packs of up to `pack_bytes`; a larger file has a pack of
/// its own. Files that could not be read, or are larger than `largest_bytes`, are in none. A pack
/// has no more files than its index can list.
std::vector<Pack> plan_packs(const Source& source, const std::vector<std::uint8_t>& needed,
                             std::uint64_t pack_bytes, std::uint64_t largest_bytes);

/// Every file in a pack of its own that has its name. Throws Error(data) naming one that cannot be
/// read, whose name a stage cannot take, or that is there twice.
std::vector<Pack> plan_whole_files(const Source& source);

}  // namespace hpcai::data::staging
