// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <hpcai/data/climate_file.hpp>
#include <hpcai/tensor/dtype.hpp>

namespace hpcai::data {

/// The files that `path` stands for: itself, or the *.h5 and *.hdf5 in a folder, sorted by name;
/// hidden ones are left out.
/// Throws Error(data) when there are none.
std::vector<std::filesystem::path> climate_files_at(const std::filesystem::path& path);

/// What reading every sample of ExtremeWeather files shows.
struct ClimateReport {
    std::int64_t samples = 0;
    int height = 0;
    int width = 0;
    std::vector<std::string> channel_names;        // Z100 in the place of Z1000 where it is that
    std::vector<std::int64_t> boxes_per_category;  // by category - 1
    std::int64_t files_with_corners = 0;           // whose boxes are read as BoxOrder::corners
    std::int64_t files_with_ranges = 0;            // as BoxOrder::ranges
    std::int64_t samples_without_box = 0;
    std::int64_t dropped_boxes = 0;
    std::vector<std::string> bad_samples;  // "file/17": not all values are finite
    ChannelStatistics statistics;          // over the good samples
    std::vector<float> minimum;
    std::vector<float> maximum;
};

/// Reads the files in blocks of whole chunks. The statistics are those of Chan's pairwise update,
/// the same for every number of threads. Throws Error(data) as ClimateFile does, and for files that
/// differ in their pictures' size or in what channel 13 is.
ClimateReport survey_climate(const std::vector<std::filesystem::path>& files,
                             const ClimateFileSettings& settings, int threads);

struct TranscodeOptions {
    std::vector<std::filesystem::path> files;  // ExtremeWeather HDF5
    std::filesystem::path output;              // new or empty folder
    tensor::DType dtype = tensor::DType::f16;  // f32, f16 or bf16
    /// Folder of other records whose mean and deviation are used, as a test set uses those of the
    /// training set; empty: those of `files`. Its channels must be those of `files`.
    std::filesystem::path statistics_from;
    ClimateFileSettings source;
    /// skip: samples with values that are not finite, as stored or as normalized dtype, are left
    /// out; otherwise they are an error.
    bool skip_bad_samples = false;
    int threads = 1;
};

struct TranscodeReport {
    std::int64_t samples = 0;
    std::int64_t skipped_samples = 0;
    std::int64_t dropped_boxes = 0;
    std::uint64_t bytes = 0;
};

/// Writes a RecordSet: normalized in fp32, then rounded to dtype (to nearest even), channels last,
/// one record file for each HDF5 file, and a manifest.sha256 of all. The folder appears when it is
/// complete. Throws Error(data) for bad input, Error(usage) for bad options or when the output
/// cannot be written.
TranscodeReport transcode(const TranscodeOptions& options);

}  // namespace hpcai::data
