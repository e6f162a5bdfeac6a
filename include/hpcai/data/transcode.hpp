// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/data/climate_file.hpp>
#include <hpcai/tensor/dtype.hpp>

namespace hpcai::data {

/// Returns `path`; if it is a folder, returns its *.h5 and *.hdf5 files that are not hidden, sorted
/// by name. Throws Error(data) if the folder has none or cannot be listed.
std::vector<std::filesystem::path> climate_files_at(const std::filesystem::path& path);

/// The result of reading every sample of ExtremeWeather files.
struct ClimateReport {
    std::int64_t samples = 0;
    int height = 0;
    int width = 0;
    std::vector<std::string> channel_names;  // channel 13 is Z1000 or Z100, by the files' values
    std::vector<std::int64_t> boxes_per_category;  // by category - 1
    std::int64_t files_with_corners = 0;           // boxes were read as BoxOrder::corners
    std::int64_t files_with_ranges = 0;            // boxes were read as BoxOrder::ranges
    std::int64_t samples_without_box = 0;
    std::int64_t dropped_boxes = 0;
    std::vector<std::string> bad_samples;  // "file/17": some value is not finite
    ChannelStatistics statistics;          // over the good samples
    std::vector<float> minimum;            // by channel, over the good samples
    std::vector<float> maximum;            // likewise
};

/// Reads one or more files in blocks of one chunk, at most 4 GiB each. The statistics use Chan's
/// pairwise update and do not depend on the number of threads. Throws Error(data) like ClimateFile
/// and for files that differ in the size of fields or the level of channel 13.
ClimateReport survey_climate(const std::vector<std::filesystem::path>& files,
                             const ClimateFileSettings& settings, int threads);

struct TranscodeOptions {
    std::vector<std::filesystem::path> files;  // ExtremeWeather HDF5, at least one
    std::filesystem::path output;              // absent or empty folder
    tensor::DType dtype = tensor::DType::f16;  // f32, f16 or bf16
    /// Folder of records whose statistics to use, for example the training set's for a test set.
    /// Its channels must equal those of `files`. If empty, uses the statistics of `files`, with
    /// standard deviations of 0 replaced by 1.
    std::filesystem::path statistics_from;
    ClimateFileSettings source;
    /// If true, omits samples with values that are not finite, in the file or after normalization
    /// and rounding to `dtype`. If false, such a sample is an error.
    bool skip_bad_samples = false;
    int threads = 1;
};

struct TranscodeReport {
    std::int64_t samples = 0;
    std::int64_t skipped_samples = 0;
    std::int64_t dropped_boxes = 0;
    std::uint64_t bytes = 0;  // of all records
};

/// Writes a RecordSet and its manifest.sha256. Normalizes in fp32, rounds to nearest even and
/// stores channels last. Each HDF5 file with a good sample makes one record file. Renames the
/// folder when complete. Throws Error(data) for bad input, and Error(usage) for bad options or a
/// failed write.
TranscodeReport transcode(const TranscodeOptions& options);

}  // namespace hpcai::data
