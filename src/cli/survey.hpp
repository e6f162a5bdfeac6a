// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include <hpcai/data/climate_file.hpp>

#include "command.hpp"

/// What `data check` and `data stats` find in each kind of data, and options of commands on data.
namespace hpcai::cli {

enum class DataKind : std::uint8_t { pictures, climate, records };

/// By names alone: *.h5, *.hdf5 or a folder with such files; a folder with records.json.
DataKind kind_of(const std::string& path);

/// By names alone: a folder with ImageSets/Main and Annotations.
bool is_voc(const std::string& path);
/// *.json
bool is_coco(const std::string& path);

/// --box-order detect|corners|ranges.
void add_box_order(Command command, data::ClimateFileSettings& settings);
/// --threads N; 0, all cores this process may use, when it is not given.
void add_threads(Command command, int& threads);
/// `threads`, or the cores that this process may use when it is 0.
int threads_or_all(int threads);

struct SurveyOptions {
    std::string path;
    int threads = 0;  // 0: one for each core this process may use
    bool json = false;
    data::ClimateFileSettings climate;
    std::string split;     // of Pascal VOC, a list in ImageSets/Main; empty: train
    std::string pictures;  // of COCO, the folder of file_name; empty: the file's own
};

/// One survey for people and for programs, each as the command prints it.
struct Survey {
    std::string text;
    nlohmann::ordered_json json;
    const char* samples_name = "samples";
    std::int64_t samples = 0;
    std::size_t bad = 0;             // of these
    ExitCode code = ExitCode::data;  // where some are bad
};

/// Decodes every picture. Throws Error(data) as data::load_samples does.
Survey check_pictures(const SurveyOptions& options);
/// Reads every annotation, of the split alone, and decodes the pictures. Throws Error(data) for the
/// first annotation that is not sound, naming its file.
Survey check_annotations(const SurveyOptions& options);
/// Reads every value.
Survey check_climate(const SurveyOptions& options);
/// Compares every checksum and looks at every number. Throws Error(data) for the first checksum
/// that differs.
Survey check_records(const SurveyOptions& options);

/// Mean and deviation of the colours, as a part of a configuration file.
Survey picture_statistics(const SurveyOptions& options);
/// Mean, deviation and range of each channel in physical units.
Survey climate_statistics(const SurveyOptions& options);
/// The statistics that the records were normalized with.
Survey record_statistics(const SurveyOptions& options);

}  // namespace hpcai::cli
