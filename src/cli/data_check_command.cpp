// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>

#include <hpcai/base/text.hpp>

#include "annotation_survey.hpp"
#include "climate_survey.hpp"
#include "commands.hpp"
#include "picture_survey.hpp"

namespace hpcai::cli {
namespace {

void print_text(const PictureSurvey& found, const std::string& path, std::ostream& out) {
    out << printable(path) << ": " << describe(found) << '\n';
    for (const data::BadSample& bad : found.report.bad) {
        out << "bad      " << printable(bad.name) << ": " << printable(bad.reason) << '\n';
    }
    for (const std::string& name : found.index.ignored) {
        out << "ignored  " << printable(name) << ": not a regular file\n";
    }
}

nlohmann::ordered_json json_of(const PictureSurvey& found, const std::string& path) {
    nlohmann::ordered_json document = common_json(found, path);
    document["bad"] = nlohmann::ordered_json::array();
    for (const data::BadSample& bad : found.report.bad) {
        document["bad"].push_back({{"name", bad.name}, {"reason", bad.reason}});
    }
    document["ignored"] = found.index.ignored;
    return document;
}

/// How files of some kinds are to be understood.
struct Sources {
    data::ClimateFileSettings climate;
    AnnotationSource annotations;
};

void require_use(const SurveyOptions& options, const AnnotationSource& annotations) {
    require(annotations.split.empty() || is_voc(options.path), ExitCode::usage,
            "data check: --split: expected with a Pascal VOC folder only, got {}",
            in_quotes(annotations.split));
    require(annotations.pictures.empty() || (is_coco(options.path) && !is_voc(options.path)),
            ExitCode::usage,
            "data check: --pictures: expected with a COCO file (*.json) only, got {}",
            in_quotes(annotations.pictures));
}

ExitCode check(const SurveyOptions& options, const Sources& sources, std::ostream& out) {
    require_use(options, sources.annotations);
    if (is_voc(options.path) || is_coco(options.path)) {
        return check_annotations(options, sources.annotations, out);
    }
    const DataKind kind = kind_of(options.path);
    if (kind == DataKind::climate) return check_climate(options, sources.climate, out);
    if (kind == DataKind::records) return check_records(options, out);
    const PictureSurvey found = survey(options);
    if (options.json) {
        out << json_text(json_of(found, options.path));
    } else {
        print_text(found, options.path, out);
    }
    require_sound(found, options.path);
    return ExitCode::ok;
}

}  // namespace

void add_data_check_command(CLI::App& parent, Context& context) {
    CLI::App& command = add_command(
        parent,
        {"check",
         "Read every picture of a folder, every picture and annotation of a list of a Pascal VOC "
         "folder or of a COCO file (*.json), or every sample of ExtremeWeather files or records, "
         "and name the bad ones (exit 4).",
         {"hpcai500 data check /data/imagenet/train",
          "hpcai500 data check VOCdevkit/VOC2007 --split test",
          "hpcai500 data check annotations/instances_val2017.json --pictures val2017",
          "hpcai500 data check climo_1984.h5 --threads 2 --json"}});
    auto options = add_survey_options(command);
    auto sources = std::make_shared<Sources>();
    add_box_order(command, sources->climate);
    add_text(command, "--split", sources->annotations.split, "NAME",
             "list in ImageSets/Main of a Pascal VOC folder (train)");
    add_text(command, "--pictures", sources->annotations.pictures, "FOLDER",
             "where the pictures of a COCO file are (beside it)");
    set_action(command, context,
               [options, sources, &context] { return check(*options, *sources, context.out); });
}

}  // namespace hpcai::cli
