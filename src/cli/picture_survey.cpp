// SPDX-License-Identifier: Apache-2.0
#include "picture_survey.hpp"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <system_error>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/data/annotated_pictures.hpp>
#include <hpcai/device/cpu_device.hpp>

#include "json_text.hpp"

namespace hpcai::cli {
namespace {

namespace fs = std::filesystem;

std::string range_text(std::int64_t low, std::int64_t high) {
    if (low == high) return format_count(low);
    return fmt::format("{} to {}", format_count(low), format_count(high));
}

std::string split_of(const AnnotationSource& source) {
    return source.split.empty() ? "train" : source.split;
}

data::AnnotatedPictures read_annotations(const std::string& path, const AnnotationSource& source) {
    if (is_voc(path)) return data::read_voc(path, split_of(source), {});
    const fs::path beside = fs::path(path).parent_path();
    return data::read_coco(path, source.pictures.empty() ? beside : fs::path(source.pictures), {});
}

std::int64_t boxes_of(const data::AnnotationReport& report) {
    std::int64_t boxes = 0;
    for (const std::int64_t of_class : report.boxes_per_class) boxes += of_class;
    return boxes;
}

void print_annotations(const data::AnnotatedPictures& set, const data::AnnotationReport& report,
                       const std::string& name, std::ostream& out) {
    const auto pictures = static_cast<std::int64_t>(set.pictures.size());
    out << fmt::format(
        "{}: {} pictures, {} without a box; {} boxes of {} classes, {} of them clipped; dropped: "
        "{} without area, {} crowds\n",
        printable(name), format_count(pictures), format_count(report.pictures_without_box),
        format_count(boxes_of(report)), set.classes.size(), format_count(set.clipped_boxes),
        format_count(set.left_out.without_area), format_count(set.left_out.crowds));
    for (std::size_t i = 0; i < set.classes.size(); ++i) {
        out << fmt::format("boxes    {}: {}\n", printable(set.classes[i]),
                           format_count(report.boxes_per_class[i]));
    }
    for (const data::BadSample& bad : report.bad) {
        out << "bad      " << printable(bad.name) << ": " << printable(bad.reason) << '\n';
    }
}

nlohmann::ordered_json annotations_json(const data::AnnotatedPictures& set,
                                        const data::AnnotationReport& report,
                                        const std::string& path) {
    nlohmann::ordered_json classes = nlohmann::ordered_json::array(), bad = classes;
    for (std::size_t i = 0; i < set.classes.size(); ++i) {
        classes.push_back({{"name", set.classes[i]}, {"boxes", report.boxes_per_class[i]}});
    }
    for (const data::BadSample& one : report.bad) {
        bad.push_back({{"name", one.name}, {"reason", one.reason}});
    }
    return {{"path", path},
            {"samples", set.pictures.size()},
            {"samples_without_box", report.pictures_without_box},
            {"classes", classes},
            {"clipped_boxes", set.clipped_boxes},
            {"dropped_boxes", set.left_out.without_area},
            {"crowds", set.left_out.crowds},
            {"bad", bad}};
}

}  // namespace

void add_survey_options(Command command, SurveyOptions& options) {
    command.add_text("PATH", options.path, "", "folder of class folders, or an index file",
                     Presence::required);
    add_threads(command, options.threads);
    add_json_flag(command, options.json);
}

void add_threads(Command command, int& threads) {
    command.add_integer("--threads", threads, {1, 1024},
                        "threads (as many as there are cores to use)");
}

int threads_or_all(int threads) {
    return threads > 0 ? threads : device::count_cores().allowed;
}

PictureSurvey survey(const SurveyOptions& options) {
    PictureSurvey result;
    result.index = data::load_samples(options.path);
    result.report = data::survey(result.index, threads_or_all(options.threads));
    return result;
}

std::string describe(const PictureSurvey& survey) {
    const data::FolderReport& report = survey.report;
    const auto [least, most] =
        std::minmax_element(report.samples_per_class.begin(), report.samples_per_class.end());
    std::string text =
        fmt::format("{} pictures of {} classes, {} a class",
                    format_count(static_cast<std::int64_t>(survey.index.samples.size())),
                    format_count(static_cast<std::int64_t>(survey.index.classes.size())),
                    range_text(*least, *most));
    if (report.pixels > 0) {
        text += fmt::format(", sides of {} pixels",
                            range_text(report.smallest_side, report.largest_side));
    }
    return text;
}

nlohmann::ordered_json common_json(const PictureSurvey& survey, const std::string& path) {
    nlohmann::ordered_json classes = nlohmann::ordered_json::array();
    for (std::size_t label = 0; label < survey.index.classes.size(); ++label) {
        classes.push_back({{"name", survey.index.classes[label]},
                           {"samples", survey.report.samples_per_class[label]}});
    }
    return {{"path", path},
            {"samples", survey.index.samples.size()},
            {"bad_samples", survey.report.bad.size()},
            {"smallest_side", survey.report.smallest_side},
            {"largest_side", survey.report.largest_side},
            {"classes", classes}};
}

void require_sound(const PictureSurvey& survey, const std::string& path) {
    const std::size_t bad = survey.report.bad.size();
    require(bad == 0, survey.report.exit_code(), "{}: {} of {} pictures {} bad", printable(path),
            bad, survey.index.samples.size(), bad == 1 ? "is" : "are");
}

bool is_voc(const std::string& path) {
    std::error_code ignored;
    return fs::is_directory(fs::path(path) / "ImageSets" / "Main", ignored) &&
           fs::is_directory(fs::path(path) / "Annotations", ignored);
}

bool is_coco(const std::string& path) {
    return fs::path(path).extension() == ".json";
}

ExitCode check_annotations(const SurveyOptions& options, const AnnotationSource& source,
                           std::ostream& out) {
    const data::AnnotatedPictures set = read_annotations(options.path, source);
    const data::AnnotationReport report = data::survey(set, threads_or_all(options.threads));
    if (options.json) {
        nlohmann::ordered_json document = annotations_json(set, report, options.path);
        if (is_voc(options.path)) document["split"] = split_of(source);
        out << json_text(document);
    } else {
        const std::string list =
            is_voc(options.path) ? fmt::format(" ({})", split_of(source)) : std::string();
        print_annotations(set, report, options.path + list, out);
    }
    const std::size_t bad = report.bad.size();
    require(bad == 0, ExitCode::data, "{}: {} of {} pictures {} bad", printable(options.path), bad,
            set.pictures.size(), bad == 1 ? "is" : "are");
    return ExitCode::ok;
}

}  // namespace hpcai::cli
