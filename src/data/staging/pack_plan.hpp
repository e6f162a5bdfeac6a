// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

/// The assignment of source files to files in the staging folder: pure arithmetic, so that all
/// ranks of a node compute the same plan without communication.
namespace hpcai::data::staging {

/// The position of a rank among the ranks of its node.
struct NodePlace {
    int node = 0;
    int node_rank = 0;
    std::vector<plan::RankPlace> ranks;  // all ranks of the node, including this one
};

NodePlace place_on_node(const plan::ParallelismController& controller, int world_rank);

/// Returns, for each sample, 1 if a rank of the node reads it and data.staging covers it. In
/// training, only ranks with the first shard of the first pipeline stage read. A node with such a
/// rank needs the group's whole bootstrap sample, because each epoch distributes it over the ranks
/// again. In evaluation (test and out-of-bag samples), the node needs the shares of its ranks.
std::vector<std::uint8_t> needed_samples(const config::Config& config, Split split,
                                         std::uint32_t samples, const NodePlace& place,
                                         const plan::Layout& layout);

/// Metadata of a file.
struct FileFacts {
    std::int64_t bytes = -1;  // -1 if it is no regular file, or stat() fails
    std::int64_t modified_seconds = 0;
    std::int64_t modified_nanoseconds = 0;  // fraction of a second

    bool operator==(const FileFacts&) const = default;
};

/// Numbered files below a folder of the shared file system.
struct Source {
    std::filesystem::path root;
    std::uint32_t files = 0;
    std::function<std::string(std::uint32_t)> path_of;        // relative to root
    std::vector<FileFacts> facts;                             // by file
    std::map<std::string, std::string, std::less<>> digests;  // SHA-256 by path, from the manifest
    bool has_manifest = false;

    std::filesystem::path full_path(std::uint32_t file) const { return root / path_of(file); }
};

/// One file in the staging folder: concatenated files of the source.
struct Pack {
    std::string name;
    std::vector<std::uint32_t> files;
    std::uint64_t bytes = 0;
    std::string fingerprint;  // SHA-256 of root, paths, sizes and times of modification
};

/// Plans packs of up to `pack_bytes` for the files with `needed`[file] 1; a larger file has its own
/// pack. Files with -1 bytes, or with more than `largest_bytes`, are in no pack. A pack has no more
/// files than its index can list.
std::vector<Pack> plan_packs(const Source& source, const std::vector<std::uint8_t>& needed,
                             std::uint64_t pack_bytes, std::uint64_t largest_bytes);

/// Plans one pack per file, with the name of the file. Throws Error(data) naming a file that has -1
/// bytes, occurs twice, or has an invalid name (DataDuplicator::add_files).
std::vector<Pack> plan_whole_files(const Source& source);

}  // namespace hpcai::data::staging
