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

/// Count, mean, sum of squares and extremes (Chan et al., 1979: pairwise update).
struct Moments {
    double count = 0;
    double mean = 0;
    double squares = 0;  // sum of squared distances from the mean
    float minimum = 0;
    float maximum = 0;

    double deviation() const { return count > 0 ? std::sqrt(squares / count) : 0; }
    void merge(const Moments& other);
};

/// Returns the moments of one or more values. A NaN makes mean and squares NaN.
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

/// Calls `action` for every sample of a file in order. Reads blocks of one chunk, at most 4 GiB.
void for_each_sample(const ClimateFile& file,
                     const std::function<void(const ScannedSample&)>& action);

/// Opens the files one after the other and calls `action` for each. Throws Error(usage) if there is
/// no file, Error(data) for a file that is invalid or differs from earlier files in the size of
/// its fields or the pressure level of channel 13.
void for_each_file(const std::vector<std::filesystem::path>& paths,
                   const ClimateFileSettings& settings,
                   const std::function<void(const ClimateFile&)>& action);

}  // namespace hpcai::data::climate
