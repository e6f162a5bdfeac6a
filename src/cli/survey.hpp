// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include <hpcai/data/climate_file.hpp>

#include "command.hpp"

/// The surveys of `data check` and `data stats` for each kind of data, and their options.
namespace hpcai::cli {

enum class DataKind : std::uint8_t { pictures, voc, coco, climate, records };

/// Returns the kind of data by file names: voc for a folder with ImageSets/Main and Annotations;
/// coco for *.json; records for a folder with records.json; climate for *.h5 and *.hdf5 and a
/// folder with such files; else pictures. Throws Error(usage) for *.yaml and *.yml.
DataKind kind_of(const std::string& path);

/// Adds --box-order detect|corners|ranges.
void add_box_order(Command command, data::ClimateFileSettings& settings);
/// Sets `threads` to 0 and adds --threads N.
void add_threads(Command command, int& threads);
/// Returns `threads`, or if it is 0, the number of cores that this process may use.
int threads_or_all(int threads);

struct SurveyOptions {
    std::string path;
    int threads = 0;  // 0: as in threads_or_all()
    bool json = false;
    data::ClimateFileSettings climate;
    std::string split;     // Pascal VOC: list in ImageSets/Main; empty: train
    std::string pictures;  // COCO: folder of the images; empty: the file's folder
};

/// The output of a survey as text and as JSON.
struct Survey {
    std::string text;
    nlohmann::ordered_json json;
    const char* samples_name = "samples";
    std::int64_t samples = 0;
    std::size_t bad = 0;             // number of bad samples
    ExitCode code = ExitCode::data;  // exit code if samples are bad
};

/// Decodes every image. Throws Error(data) as data::load_samples does.
Survey check_pictures(const SurveyOptions& options);
/// Reads every annotation (Pascal VOC: of the split) and decodes the images. Throws Error(data)
/// naming the file of the first invalid annotation.
Survey check_annotations(const SurveyOptions& options);
/// Reads every value. A sample is bad if a value is not finite.
Survey check_climate(const SurveyOptions& options);
/// Checks every checksum and number. Throws Error(data) for the first wrong checksum.
Survey check_records(const SurveyOptions& options);

/// Mean and standard deviation of each colour in [0, 1], as keys of a configuration file.
Survey picture_statistics(const SurveyOptions& options);
/// Mean, standard deviation and range of each channel in physical units.
Survey climate_statistics(const SurveyOptions& options);
/// The statistics by which the records were normalized.
Survey record_statistics(const SurveyOptions& options);

}  // namespace hpcai::cli
