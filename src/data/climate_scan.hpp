// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <hpcai/data/climate_file.hpp>

namespace hpcai::data::climate {

/// Mean, sum of squares and extremes, merged by Chan's pairwise update (Chan et al., 1979).
struct Moments {
    double count = 0;
    double mean = 0;
    double squares = 0;  // sum of squared distances from the mean
    float minimum = 0;
    float maximum = 0;

    double deviation() const { return count > 0 ? std::sqrt(squares / count) : 0; }
    void join(const Moments& other);
};

/// Returns the moments of one channel of one sample, which has at least one value. A NaN makes mean
/// and squares NaN.
Moments moments_of(std::span<const float> values);

/// One sample as stored in a file.
struct ScannedSample {
    const ClimateFile& file;
    std::int64_t number;
    std::span<const float> fields;  // (16, H, W)
};

using SampleMoments = std::array<Moments, kClimateChannels>;

/// Returns the moments of all channels, independent of the number of threads.
SampleMoments moments_of(const ScannedSample& sample, int threads);
/// Returns false when a value is NaN or infinite.
bool is_finite(const SampleMoments& moments);

/// Returns "climo_1984.h5/17".
std::string name_of(const ScannedSample& sample);

/// Reads every sample of a file in order, in blocks of one chunk, or 4 GiB if a chunk has more.
void for_each_sample(const ClimateFile& file,
                     const std::function<void(const ScannedSample&)>& action);

/// Opens the files one after the other and calls `action` for each. Throws Error(usage) if there is
/// no file, Error(data) for a file that is invalid or differs from earlier files in the size of
/// pictures or the level of channel 13.
void for_each_file(const std::vector<std::filesystem::path>& paths,
                   const ClimateFileSettings& settings,
                   const std::function<void(const ClimateFile&)>& action);

}  // namespace hpcai::data::climate
