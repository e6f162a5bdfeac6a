// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include <hpcai/data/sample_index.hpp>
#include <hpcai/data/survey.hpp>

#include "command.hpp"

/// What `data check` and `data stats` share: both decode every picture.
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

/// PATH, --threads and --json. The object lives as long as the command.
std::shared_ptr<SurveyOptions> add_survey_options(CLI::App& command);

/// --threads N; 0, all cores this process may use, when it is not given.
void add_threads(CLI::App& command, int& threads);

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

}  // namespace hpcai::cli
