// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/data/climate_generator.hpp>

namespace hpcai::data {

struct GenerateOptions {
    std::filesystem::path directory;
    int classes = 10;  // up to kMaxPhotographClasses
    int training_per_class = 100;
    int validation_per_class = 20;
    int size = 96;  // longer side, pixels
    std::uint64_t seed = 1;
    int quality = 90;  // JPEG, 1 to 100
};

/// Writes synthetic photographs (see make_photograph) in the ImageNet layout, train/<class>/*.jpg
/// and val/<class>/*.jpg, and the options as photographs.json. Writes to a temporary folder that is
/// renamed when complete, or removed on failure. Returns false if `directory` already has a set
/// with the same options and number of files. Throws Error(usage) for a directory that is "" or has
/// other contents, and if a write fails.
bool generate_photographs(const GenerateOptions& options, int threads);

struct GenerateClimateOptions {
    std::filesystem::path file;
    std::int64_t samples = 16;
    Split split = Split::training;
    ClimateSettings settings;
};

/// Writes samples 0, 1, ... of a ClimateGenerator in the ExtremeWeather layout, with the settings
/// as attributes. The file does not depend on the number of threads. It is renamed to its final
/// name when complete. Throws Error(usage) like ClimateGenerator, for an existing file and for a
/// failed write.
void generate_climate(const GenerateClimateOptions& options, int threads);

/// Writes the data sets of problem class mini: photographs/{train,val}, weather/{train,test}.h5.
/// Keeps sets that exist and returns only their paths. Throws like the functions above.
std::vector<std::filesystem::path> generate_mini(const std::filesystem::path& directory,
                                                 int threads);

}  // namespace hpcai::data
