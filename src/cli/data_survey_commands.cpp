// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>

#include "climate_survey.hpp"
#include "commands.hpp"
#include "json_text.hpp"
#include "picture_survey.hpp"

namespace hpcai::cli {
namespace {

void print_pictures(const PictureSurvey& found, const std::string& path, std::ostream& out) {
    out << printable(path) << ": " << describe(found) << '\n';
    for (const data::BadSample& bad : found.report.bad) {
        out << "bad      " << printable(bad.name) << ": " << printable(bad.reason) << '\n';
    }
    for (const std::string& name : found.index.ignored) {
        out << "ignored  " << printable(name) << ": not a regular file\n";
    }
}

nlohmann::ordered_json pictures_json(const PictureSurvey& found, const std::string& path) {
    nlohmann::ordered_json document = common_json(found, path);
    document["bad"] = nlohmann::ordered_json::array();
    for (const data::BadSample& bad : found.report.bad) {
        document["bad"].push_back({{"name", bad.name}, {"reason", bad.reason}});
    }
    document["ignored"] = found.index.ignored;
    return document;
}

struct CheckOptions {
    SurveyOptions survey;
    data::ClimateFileSettings climate;
    AnnotationSource annotations;
};

/// Refuses options that mean nothing for data of the kind at `path`.
void require_use(const std::string& path, const AnnotationSource& annotations) {
    require(annotations.split.empty() || is_voc(path), ExitCode::usage,
            "data check: --split: expected with a Pascal VOC folder only, got {}",
            in_quotes(annotations.split));
    require(annotations.pictures.empty() || (is_coco(path) && !is_voc(path)), ExitCode::usage,
            "data check: --pictures: expected with a COCO file (*.json) only, got {}",
            in_quotes(annotations.pictures));
}

ExitCode check_pictures(const SurveyOptions& options, std::ostream& out) {
    const PictureSurvey found = survey(options);
    if (options.json) {
        out << json_text(pictures_json(found, options.path));
    } else {
        print_pictures(found, options.path, out);
    }
    require_sound(found, options.path);
    return ExitCode::ok;
}

ExitCode check(const CheckOptions& options, const Context& context) {
    const std::string& path = options.survey.path;
    require_use(path, options.annotations);
    if (is_voc(path) || is_coco(path)) {
        return check_annotations(options.survey, options.annotations, context.out);
    }
    const DataKind kind = kind_of(path);
    if (kind == DataKind::climate) {
        return check_climate(options.survey, options.climate, context.out);
    }
    if (kind == DataKind::records) return check_records(options.survey, context.out);
    return check_pictures(options.survey, context.out);
}

struct StatsOptions {
    SurveyOptions survey;
    data::ClimateFileSettings climate;
};

/// As a part of a configuration file.
void print_yaml(const PictureSurvey& found, const std::string& path, std::ostream& out) {
    const data::FolderReport& report = found.report;
    out << fmt::format(
        "# {}: {}\n"
        "data:\n"
        "  mean: [{:.4f}]\n"
        "  standard_deviation: [{:.4f}]\n",
        printable(path), describe(found), fmt::join(report.mean, ", "),
        fmt::join(report.standard_deviation, ", "));
}

ExitCode print_picture_statistics(const SurveyOptions& options, std::ostream& out) {
    const PictureSurvey found = survey(options);
    if (options.json) {
        nlohmann::ordered_json document = common_json(found, options.path);
        document["pixels"] = found.report.pixels;
        document["mean"] = found.report.mean;
        document["standard_deviation"] = found.report.standard_deviation;
        out << json_text(document);
    } else {
        print_yaml(found, options.path, out);
    }
    require_sound(found, options.path);
    return ExitCode::ok;
}

ExitCode stats(const StatsOptions& options, const Context& context) {
    const DataKind kind = kind_of(options.survey.path);
    if (kind == DataKind::climate) {
        return print_climate_statistics(options.survey, options.climate, context.out);
    }
    if (kind == DataKind::records) return print_record_statistics(options.survey, context.out);
    return print_picture_statistics(options.survey, context.out);
}

}  // namespace

void add_data_check_command(Command parent) {
    const auto options = std::make_shared<CheckOptions>();
    const Command command = parent.add_command(
        {"check",
         "Read every picture of a folder, every picture and annotation of a list of a Pascal VOC "
         "folder or of a COCO file (*.json), or every sample of ExtremeWeather files or records, "
         "and name the bad ones (exit 4).",
         {"hpcai500 data check /data/imagenet/train",
          "hpcai500 data check VOCdevkit/VOC2007 --split test",
          "hpcai500 data check annotations/instances_val2017.json --pictures val2017",
          "hpcai500 data check climo_1984.h5 --threads 2 --json"}});
    add_survey_options(command, options->survey);
    add_box_order(command, options->climate);
    command.add_text("--split", options->annotations.split, "NAME",
                     "list in ImageSets/Main of a Pascal VOC folder (train)");
    command.add_text("--pictures", options->annotations.pictures, "FOLDER",
                     "where the pictures of a COCO file are (beside it)");
    command.set_action(options, check);
}

void add_data_stats_command(Command parent) {
    const auto options = std::make_shared<StatsOptions>();
    const Command command = parent.add_command(
        {"stats",
         "Measure mean and standard deviation of a folder's pictures, as configuration, or of "
         "ExtremeWeather files; bad ones are left out and end with exit 4.",
         {"hpcai500 data stats quickstart-data/train",
          "hpcai500 data stats climo_1984.h5 --json"}});
    add_survey_options(command, options->survey);
    add_box_order(command, options->climate);
    command.set_action(options, stats);
}

}  // namespace hpcai::cli
