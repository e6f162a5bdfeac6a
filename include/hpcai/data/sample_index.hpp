// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <hpcai/comm/communicator.hpp>

namespace hpcai::data {

struct Sample {
    std::string path;        // relative to the index's root
    std::int32_t label = 0;  // place of its class in SampleIndex::classes
    bool operator==(const Sample&) const = default;
};

/// What an ImageNet-style folder `root/<class>/<picture>.jpg` holds. Classes are sorted by the
/// bytes of their names, the samples of a class by those of theirs; samples are numbered class
/// after class in that order (torchvision's).
struct SampleIndex {
    std::filesystem::path root;
    std::vector<std::string> classes;
    std::vector<Sample> samples;
    std::vector<std::string> ignored;  // named like pictures, but no regular files

    std::filesystem::path path_of(std::size_t sample) const { return root / samples[sample].path; }
};

/// Scans `root`. A class is a folder whose name does not begin with a dot; its samples are the
/// regular files (or links to such) directly in it named *.jpg, *.jpeg, *.jpe in any case.
/// Throws Error(data) naming what is wrong: no folder there, no class in it, a class without
/// samples, a folder that cannot be read.
SampleIndex scan_image_folder(const std::filesystem::path& root);

/// Stores an index as JSON lines, durably: first {"schema", "root", "classes", "samples"}, then one
/// {"path", "label"} a sample. `root` is stored relative to the file where the file lies in it.
/// Throws Error(usage) when the file cannot be written, Error(data) for a name that is not UTF-8.
void write_index(const SampleIndex& index, const std::filesystem::path& file);

/// Reads what write_index wrote; pictures are not looked at. Throws Error(data) naming the file
/// and line for anything else, paths that leave the root included.
SampleIndex read_index(const std::filesystem::path& file);

/// The index at `path`: an index file when it is a regular file, else a folder to be scanned.
SampleIndex load_samples(const std::filesystem::path& path);

/// Reads likewise at rank 0 alone and broadcasts. Collective; every rank throws what rank 0 did.
SampleIndex load_samples(const std::filesystem::path& path, comm::Communicator& communicator);

/// Throws Error(data) unless the index has `classes` classes (workload.classes).
void require_classes(const SampleIndex& index, int classes);

/// Throws Error(data) naming the first difference unless both have the same classes.
void require_same_classes(const SampleIndex& training, const SampleIndex& validation);

}  // namespace hpcai::data
