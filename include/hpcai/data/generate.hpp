// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/data/climate_generator.hpp>

namespace hpcai::data {

struct GenerateOptions {
    std::filesystem::path directory;
    int classes = 10;               // up to kMaxPhotographClasses
    int training_per_class = 100;   // up to 1,000,000
    int validation_per_class = 20;  // up to 1,000,000
    int size = 96;                  // longer side, 16 to 4096 pixels
    std::uint64_t seed = 1;
    int quality = 90;  // JPEG, 1 to 100
};

/// Writes synthetic photographs (see make_photograph) in the ImageNet layout, train/<class>/*.jpg
/// and val/<class>/*.jpg, and the options as photographs.json. Writes to a temporary folder that is
/// renamed when complete, or removed on failure. Returns false if `directory` already has a set
/// with the same options and number of files. Throws Error(usage) for illegal options, for a
/// directory with other contents, and if a write fails.
bool generate_photographs(const GenerateOptions& options, int threads);

struct GenerateClimateOptions {
    std::filesystem::path file;
    std::int64_t samples = 16;  // up to kMaxGeneratedSamples
    Split split = Split::training;
    ClimateSettings settings;
};

inline constexpr std::int64_t kMaxGeneratedSamples = 100'000;

/// Writes samples 0, 1, ... of a ClimateGenerator in the ExtremeWeather layout, with the settings
/// as attributes. The file does not depend on the number of threads. It is renamed to its final
/// name when complete. Throws Error(usage) for illegal options, an existing file or a failed write.
void generate_climate(const GenerateClimateOptions& options, int threads);

/// Writes the data sets of problem class mini: photographs/{train,val}, weather/{train,test}.h5.
/// Keeps existing sets and returns their paths. Throws like the functions above.
std::vector<std::filesystem::path> generate_mini(const std::filesystem::path& directory,
                                                 int threads);

}  // namespace hpcai::data
