// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/config/config.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

/// The assignment of source files to packs in the staging folder. It depends only on arguments that
/// all ranks of a node have, so they compute the same packs without communication.
namespace hpcai::data::staging {

/// A rank's node, the rank's index on this node, and all ranks of this node.
struct NodePlace {
    int node = 0;
    int node_rank = 0;
    std::vector<plan::RankPlace> ranks;
};

NodePlace place_on_node(const plan::ParallelismController& controller, int world_rank);

/// Returns, for each sample, 1 if a rank of the node reads it and data.staging covers it. Only
/// ranks with the first channels of the first stage read training samples. A node with one of these
/// ranks needs the group's entire bootstrap sample, because each epoch redistributes it over the
/// ranks. A node also needs the test and out-of-bag samples that its ranks evaluate.
std::vector<std::uint8_t> needed_samples(const config::Config& config, Split split,
                                         std::uint32_t samples, const NodePlace& place,
                                         const plan::Layout& layout);

struct FileMetadata {
    std::int64_t bytes = -1;  // -1 if the file is not regular or stat() fails
    std::int64_t modified_seconds = 0;
    std::int64_t modified_nanoseconds = 0;  // fraction of a second

    bool operator==(const FileMetadata&) const = default;
};

/// The files of a request, and what is known of them.
struct Source : StagingRequest {
    std::vector<FileMetadata> metadata;  // by file
    /// SHA-256 by path, from the manifest.
    std::map<std::string, std::string, std::less<>> digests = {};
    bool has_manifest = false;

    std::filesystem::path full_path(std::uint32_t file) const {
        return packed != nullptr ? packed->path_of(file) : root / path_of(file);
    }
    /// Returns the SHA-256 from the index of the tar files, else from the manifest; "" if unknown.
    std::string_view listed_digest(std::uint32_t file) const {
        if (packed != nullptr) return packed->ranges[file].sha256;
        const auto found = digests.find(path_of(file));
        return found == digests.end() ? std::string_view() : found->second;
    }
};

/// One file in the staging folder. It consists of concatenated source files.
struct Pack {
    std::string name;
    std::vector<std::uint32_t> files;
    std::int64_t bytes = 0;
    std::string fingerprint;  // SHA-256 of root, paths, sizes and modification times
};

/// Plans packs of up to `pack_bytes` for the files with needed[file] == 1. A larger file gets its
/// own pack. Omits files with -1 bytes or more than `max_file_bytes`. Limits the number of files
/// per pack to bound the size of its index.
std::vector<Pack> plan_packs(const Source& source, const std::vector<std::uint8_t>& needed,
                             std::int64_t pack_bytes, std::int64_t max_file_bytes);

/// Plans one pack per file, named like the file. Throws Error(data) naming a file that has -1
/// bytes, occurs twice, or has an invalid name (see DataDuplicator::add_files).
std::vector<Pack> plan_single_file_packs(const Source& source);

}  // namespace hpcai::data::staging
