// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include <hpcai/data/sample_index.hpp>
#include <hpcai/data/survey.hpp>

#include "command.hpp"

/// What `data check` and `data stats` do with pictures: both decode every one.
namespace hpcai::cli {

struct SurveyOptions {
    std::string path;
    int threads = 0;  // 0: one for each core this process may use
    bool json = false;
};

struct PictureSurvey {
    data::SampleIndex index;
    data::FolderReport report;
};

/// PATH, --threads and --json.
void add_survey_options(Command command, SurveyOptions& options);

/// --threads N; 0, all cores this process may use, when it is not given.
void add_threads(Command command, int& threads);

/// `threads`, or the cores that this process may use when it is 0.
int threads_or_all(int threads);

/// Throws Error(data) as data::load_samples does.
PictureSurvey survey(const SurveyOptions& options);

/// "1 600 pictures of 8 classes, 200 a class, sides of 36 to 48 pixels".
std::string describe(const PictureSurvey& survey);

/// Keys that the JSON of both commands has.
nlohmann::ordered_json common_json(const PictureSurvey& survey, const std::string& path);

/// Throws Error(data) with the number of bad pictures when there are any.
void require_sound(const PictureSurvey& survey, const std::string& path);

struct AnnotationSource {
    std::string split;     // of Pascal VOC, a list in ImageSets/Main; empty: train
    std::string pictures;  // of COCO, the folder of file_name; empty: the file's own
};

/// By names alone: a folder with ImageSets/Main and Annotations.
bool is_voc(const std::string& path);
/// *.json
bool is_coco(const std::string& path);

/// Reads every annotation, of the split alone, and decodes the pictures. Throws Error(data) for the
/// first annotation that is not sound, naming its file, or after printing when pictures are bad.
ExitCode check_annotations(const SurveyOptions& options, const AnnotationSource& source,
                           std::ostream& out);

}  // namespace hpcai::cli
