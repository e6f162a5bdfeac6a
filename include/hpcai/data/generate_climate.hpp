// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

#include <hpcai/data/climate_generator.hpp>

namespace hpcai::data {

struct GenerateClimateOptions {
    std::filesystem::path file;
    std::int64_t samples = 16;
    Split split = Split::training;
    ClimateSettings settings;
};

inline constexpr std::int64_t kMaxGeneratedSamples = 100'000;

/// Writes samples 0, 1, ... of a ClimateGenerator in the ExtremeWeather layout, the settings as
/// attributes. The file is the same for every number of threads and appears when it is complete.
/// Throws Error(usage) for illegal options, and when the file is there or cannot be written.
void generate_climate(const GenerateClimateOptions& options, int threads);

}  // namespace hpcai::data
