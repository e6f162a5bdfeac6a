// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <hpcai/comm/communicator.hpp>

namespace hpcai::data {

struct Sample {
    std::string path;        // relative to the index's root
    std::int32_t label = 0;  // index in SampleIndex::classes
    bool operator==(const Sample&) const = default;
};

/// The contents of an ImageNet-style folder `root/<class>/<picture>.jpg`. Classes are sorted by the
/// bytes of their names, and so are the samples of a class. Samples are numbered class after class
/// in that order, as in torchvision.
struct SampleIndex {
    std::filesystem::path root;
    std::vector<std::string> classes;
    std::vector<Sample> samples;
    std::vector<std::string> ignored;  // have names of pictures, but are no regular files

    std::filesystem::path path_of(std::size_t sample) const { return root / samples[sample].path; }
};

/// Scans `root`. A class is a folder whose name does not begin with a dot. Its samples are the
/// regular files (or links to such) directly in it named *.jpg, *.jpeg, *.jpe in any case. Throws
/// Error(data) with the reason: no folder, no class in it, a class without samples, a folder that
/// cannot be read.
SampleIndex scan_image_folder(const std::filesystem::path& root);

/// Durably stores an index as JSON lines: first {"schema", "root", "classes", "samples"}, then
/// {"path", "label"} per sample. `root` is stored relative to the file if it lies below the folder
/// of the file. Throws Error(usage) when the file cannot be written, Error(data) for a name not in
/// UTF-8.
void write_index(const SampleIndex& index, const std::filesystem::path& file);

/// Reads the output of write_index; pictures are not opened. Throws Error(data) naming the file and
/// line for anything else, including paths that leave the root.
SampleIndex read_index(const std::filesystem::path& file);

/// Reads an index file if `path` is a regular file; otherwise scans the folder.
SampleIndex load_samples(const std::filesystem::path& path);

/// Calls load_samples(path) on rank 0 and broadcasts. Collective; all ranks throw rank 0's error.
SampleIndex load_samples(const std::filesystem::path& path, comm::Communicator& communicator);

/// Throws Error(data) unless the index has `classes` classes (workload.classes).
void require_classes(const SampleIndex& index, int classes);

/// Throws Error(data) naming the first difference unless both have the same classes.
void require_same_classes(const SampleIndex& training, const SampleIndex& validation);

/// Returns why the files are not named as in ImageNet-1k (ILSVRC 2012), at most one sentence per
/// kind: class folders by WordNet number, "n01440764"; training files by class and number,
/// "n01440764_10026.JPEG"; test files "ILSVRC2012_val_00000001.JPEG" to 00050000, each once. The
/// file name extension is ignored.
std::vector<std::string> disqualifications_of_names(const SampleIndex& training,
                                                    const SampleIndex& validation);

}  // namespace hpcai::data
