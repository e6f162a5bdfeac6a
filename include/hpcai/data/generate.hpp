// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace hpcai::data {

struct GenerateOptions {
    std::filesystem::path directory;
    int classes = 10;
    int training_per_class = 100;
    int validation_per_class = 20;
    int size = 96;  // longer side, pixels
    std::uint64_t seed = 1;
    int quality = 90;  // JPEG, 1 to 100
};

/// Writes made-up photographs (see make_photograph) in the ImageNet layout, train/<class>/*.jpg and
/// val/<class>/*.jpg, with photographs.json, which records the options. All of it appears at once:
/// a neighbouring temporary folder is renamed when it is complete and removed when it is not.
/// Returns false when `directory` already holds a set with the same options and as many files, and
/// leaves it as it is. Throws Error(usage) for illegal options, for a directory that holds anything
/// else, and when it cannot be written.
bool generate_photographs(const GenerateOptions& options, int threads);

}  // namespace hpcai::data
