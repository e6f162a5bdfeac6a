// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/data/annotated_pictures.hpp>
#include <hpcai/data/sample_index.hpp>
#include <hpcai/data/survey.hpp>

#include "survey.hpp"

namespace hpcai::cli {
namespace {

namespace fs = std::filesystem;

using nlohmann::ordered_json;

/// Adds the images of a report that are bad or have a warning to the survey's text and JSON.
template <typename Report>
void add_findings(const Report& report, Survey& survey) {
    const auto add = [&](const char* label, const char* key, const auto& images) {
        ordered_json& list = survey.json[key] = ordered_json::array();
        for (const data::BadSample& one : images) {
            survey.text +=
                fmt::format("{:<8} {}: {}\n", label, printable(one.name), printable(one.reason));
            list.push_back({{"name", one.name}, {"reason", one.reason}});
        }
    };
    add("bad", "bad", report.bad);
    add("warning", "warnings", report.warnings);
}

/// Returns the name of each class and, under the key `what`, its number of samples or boxes.
ordered_json classes_json(const std::vector<std::string>& names, const char* what,
                          const std::vector<std::int64_t>& counts) {
    ordered_json classes = ordered_json::array();
    for (std::size_t label = 0; label < names.size(); ++label) {
        classes.push_back({{"name", names[label]}, {what, counts[label]}});
    }
    return classes;
}

struct Pictures {
    data::SampleIndex index;
    data::FolderReport report;
};

Pictures decode(const SurveyOptions& options) {
    Pictures pictures;
    pictures.index = data::load_samples(options.path);
    pictures.report = data::survey(pictures.index, threads_or_all(options.threads));
    return pictures;
}

std::string range_text(std::int64_t low, std::int64_t high) {
    if (low == high) return format_count(low);
    return fmt::format("{} to {}", format_count(low), format_count(high));
}

/// Returns "1 600 images of 8 classes, 200 per class, sides of 36 to 48 pixels".
std::string describe(const Pictures& pictures) {
    const data::FolderReport& report = pictures.report;
    const auto [minimum, maximum] = std::ranges::minmax(report.samples_per_class);
    std::string text = fmt::format(
        "{} images of {} classes, {} per class", format_count(std::ssize(pictures.index.samples)),
        format_count(std::ssize(pictures.index.classes)), range_text(minimum, maximum));
    if (report.pixels > 0) {
        text += fmt::format(", sides of {} pixels",
                            range_text(report.smallest_side, report.largest_side));
    }
    return text;
}

/// Returns a survey without text, with the JSON keys that `check` and `stats` share.
Survey survey_of(const Pictures& pictures, const std::string& path) {
    const data::FolderReport& report = pictures.report;
    Survey survey{.samples_name = "images",
                  .samples = std::ssize(pictures.index.samples),
                  .bad = report.bad.size(),
                  .code = report.exit_code()};
    survey.json = {
        {"path", path},
        {"samples", survey.samples},
        {"bad_samples", survey.bad},
        {"smallest_side", report.smallest_side},
        {"largest_side", report.largest_side},
        {"classes", classes_json(pictures.index.classes, "samples", report.samples_per_class)}};
    return survey;
}

data::AnnotatedPictures read_annotations(const SurveyOptions& options, const std::string& split,
                                         bool is_voc) {
    if (is_voc) return data::read_voc(options.path, split, {});
    const fs::path folder_of_file = fs::path(options.path).parent_path();
    return data::read_coco(
        options.path, options.pictures.empty() ? folder_of_file : fs::path(options.pictures), {});
}

std::string describe(const data::AnnotatedPictures& set, const data::AnnotationReport& report) {
    std::int64_t boxes = 0;
    for (const std::int64_t count : report.boxes_per_class) boxes += count;
    std::string text = fmt::format(
        "{} images, {} without a box; {} boxes of {} classes, {} of them clipped; dropped: {} "
        "without area, {} crowds\n",
        format_count(std::ssize(set.pictures)), format_count(report.pictures_without_box),
        format_count(boxes), set.classes.size(), format_count(set.clipped_boxes),
        format_count(set.omitted.without_area), format_count(set.omitted.crowds));
    for (std::size_t i = 0; i < set.classes.size(); ++i) {
        text += fmt::format("boxes    {}: {}\n", printable(set.classes[i]),
                            format_count(report.boxes_per_class[i]));
    }
    return text;
}

}  // namespace

Survey check_pictures(const SurveyOptions& options) {
    const Pictures pictures = decode(options);
    Survey survey = survey_of(pictures, options.path);
    survey.text = fmt::format("{}: {}\n", printable(options.path), describe(pictures));
    add_findings(pictures.report, survey);
    for (const std::string& name : pictures.index.ignored) {
        survey.text += fmt::format("ignored  {}: not a regular file\n", printable(name));
    }
    survey.json["ignored"] = pictures.index.ignored;
    return survey;
}

Survey picture_statistics(const SurveyOptions& options) {
    const Pictures pictures = decode(options);
    const data::FolderReport& report = pictures.report;
    Survey survey = survey_of(pictures, options.path);
    survey.text = fmt::format(
        "# {}: {}\n"
        "data:\n"
        "  mean: [{:.4f}]\n"
        "  standard_deviation: [{:.4f}]\n",
        printable(options.path), describe(pictures), fmt::join(report.mean, ", "),
        fmt::join(report.standard_deviation, ", "));
    survey.json["pixels"] = report.pixels;
    survey.json["mean"] = report.mean;
    survey.json["standard_deviation"] = report.standard_deviation;
    return survey;
}

Survey check_annotations(const SurveyOptions& options) {
    const std::string split = options.split.empty() ? "train" : options.split;
    const bool is_voc = kind_of(options.path) == DataKind::voc;
    const std::string list = is_voc ? fmt::format(" ({})", split) : "";
    const data::AnnotatedPictures set = read_annotations(options, split, is_voc);
    const data::AnnotationReport report = data::survey(set, threads_or_all(options.threads));
    Survey survey{
        .samples_name = "images", .samples = std::ssize(set.pictures), .bad = report.bad.size()};
    survey.text = fmt::format("{}: {}", printable(options.path + list), describe(set, report));
    survey.json = {{"path", options.path},
                   {"samples", survey.samples},
                   {"samples_without_box", report.pictures_without_box},
                   {"classes", classes_json(set.classes, "boxes", report.boxes_per_class)},
                   {"clipped_boxes", set.clipped_boxes},
                   {"dropped_boxes", set.omitted.without_area},
                   {"crowds", set.omitted.crowds}};
    add_findings(report, survey);
    if (is_voc) survey.json["split"] = split;
    return survey;
}

}  // namespace hpcai::cli
