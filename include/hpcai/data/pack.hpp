// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/data/sample_index.hpp>

namespace hpcai::data {

struct PackOptions {
    std::string input;    // a folder of class folders, or its index
    std::string output;   // a folder: new, empty, or with the shards of an interrupted call
    int shard_mib = 512;  // maximum MiB of images per shard; a larger image has its own shard
    int threads = 1;      // each writes one shard at a time
};

struct PackReport {
    SampleIndex index;             // of the shards; an unreadable image has no SHA-256
    std::int64_t kept_shards = 0;  // complete shards of an interrupted call
};

/// Copies the image files of a folder into shards: tar files (POSIX ustar), as WebDataset reads.
/// Sample 17 of class n01 has the members n01/000000017.jpg and n01/000000017.cls (label as text).
/// Writes kShardIndexName last. Resumes an interrupted call: keeps complete shards if names,
/// sizes and modification times of their images are the same. Throws Error(usage) if the input is
/// packed, if the output has an index or other tar files or cannot be written, and for more than
/// 400 shards, because readers keep all shards open. Throws Error(data) like load_samples(). Also
/// throws it if no image can be read, an image changes meanwhile or tar cannot store a class name.
PackReport pack_pictures(const PackOptions& options);

}  // namespace hpcai::data
