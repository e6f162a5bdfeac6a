// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <vector>

#include <hpcai/comm/communicator.hpp>

namespace hpcai::data {

/// The largest image file that is read, in bytes.
inline constexpr std::int64_t kMaxPictureBytes = std::int64_t{512} << 20;

/// Returns whether a path that was read from a file is relative and does not leave the folder to
/// which it is relative.
inline bool is_path_below(const std::string& path) {
    const std::filesystem::path parsed(path);
    return !path.empty() && !parsed.is_absolute() && path.find('\0') == std::string::npos &&
           std::find(parsed.begin(), parsed.end(), "..") == parsed.end();
}

struct Sample {
    std::string path;        // relative to the image folder
    std::int32_t label = 0;  // index in SampleIndex::classes
    bool operator==(const Sample&) const = default;
};

/// A tar file with the image files of many samples.
struct Shard {
    std::string name;        // in the index's root
    std::int64_t bytes = 0;  // of the whole file
};

/// The position of a sample's image file in the shards.
struct ShardRange {
    std::int32_t shard = 0;   // index in SampleIndex::shards
    std::int64_t offset = 0;  // bytes
    std::int64_t bytes = 0;   // 0 if the file could not be read when it was packed
    std::string sha256;       // of these bytes; "" if unknown
};

/// The contents of an ImageNet-style folder `root/<class>/<image>.jpg`. Samples are numbered in
/// order of class name, then file name, both sorted by bytes, as in torchvision. If the folder was
/// packed (pack_pictures()), `root` is the folder of its shards.
struct SampleIndex {
    std::filesystem::path root;
    std::vector<std::string> classes;
    std::vector<Sample> samples;
    std::vector<std::string> ignored;     // named like images, but not regular files
    std::vector<Shard> shards = {};       // empty if each sample has its own file
    std::vector<ShardRange> ranges = {};  // by sample; empty without shards

    bool is_packed() const { return !shards.empty(); }
    /// Returns the file that contains the sample: its own, or a shard.
    std::filesystem::path path_of(std::size_t sample) const {
        return root / (is_packed() ? shards[ranges[sample].shard].name : samples[sample].path);
    }
    /// Returns the path of the sample for messages; for a shard, also the sample and its position.
    std::string location_of(std::size_t sample) const;
};

/// Scans `root`. A class is a folder whose name does not begin with a dot. Its samples are the
/// regular files (or links to regular files) directly in it that are named *.jpg, *.jpeg, *.jpe or
/// *.png, also in capitals. Throws Error(data) if `root` is not a folder or has no class, a class
/// has no sample, a folder cannot be read, or a name has control characters or is not UTF-8.
SampleIndex scan_image_folder(const std::filesystem::path& root);

inline constexpr const char* kShardIndexName = "shards.jsonl";

/// Durably stores an index as JSON lines: first {"schema", "root", "classes", "samples"}, then
/// {"path", "label"} per sample. With shards, the first line also has "shards", a list of {"name",
/// "bytes"}, and each other line also has "shard", "offset", "bytes" and "sha256". A `root` in or
/// below the folder of `file` is stored relative to that folder. Throws Error(usage) if the file
/// cannot be written, and Error(data) for a name that is not UTF-8.
void write_index(const SampleIndex& index, const std::filesystem::path& file);

/// Reads the output of write_index(), but no image. Throws Error(data), naming the file and any
/// wrong line, for other contents, paths outside the root, shards outside the folder of `file`, and
/// ranges outside their shard.
SampleIndex read_index(const std::filesystem::path& file);

/// Reads the index if `path` is a file or a folder of shards; otherwise scans the folder.
SampleIndex load_samples(const std::filesystem::path& path);

/// Returns the classes of load_samples(path) without reading the contents of
/// the class folders. Throws Error(data).
std::vector<std::string> class_names(const std::filesystem::path& path);

/// Returns load_samples(path) of rank 0, or throws its error, on all ranks. If there are several
/// ranks, `ignored` is empty and, without `with_digests`, the ranges have no SHA-256, to save
/// memory. Collective.
SampleIndex load_samples(const std::filesystem::path& path, comm::Communicator& communicator,
                         bool with_digests = false);

/// Throws Error(data) unless the index has `classes` classes (workload.classes).
void require_classes(const SampleIndex& index, int classes);

/// Throws Error(data) naming the first difference unless the indexes have the same classes.
void require_same_classes(const SampleIndex& training, const SampleIndex& validation);

/// Returns how names differ from those of ImageNet-1k (ILSVRC 2012), at most one sentence per kind:
/// class folders like "n01440764"; training files like "n01440764_10026.JPEG"; test files
/// "ILSVRC2012_val_00000001.JPEG" to 00050000, each once. Ignores file name extensions.
std::vector<std::string> disqualifications_of_names(const SampleIndex& training,
                                                    const SampleIndex& validation);

}  // namespace hpcai::data
