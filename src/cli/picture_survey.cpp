// SPDX-License-Identifier: Apache-2.0
#include "picture_survey.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/device/cpu_device.hpp>

namespace hpcai::cli {
namespace {

std::string range_text(std::int64_t low, std::int64_t high) {
    if (low == high) return format_count(low);
    return fmt::format("{} to {}", format_count(low), format_count(high));
}

}  // namespace

std::shared_ptr<SurveyOptions> add_survey_options(CLI::App& command) {
    auto options = std::make_shared<SurveyOptions>();
    add_text(command, "PATH", options->path, "", "folder of class folders, or an index file")
        .required();
    add_threads(command, options->threads);
    add_json_flag(command, options->json);
    return options;
}

void add_threads(CLI::App& command, int& threads) {
    add_integer(
        command, "--threads", [&threads](std::int64_t count) { threads = static_cast<int>(count); },
        {1, 1024}, "threads (as many as there are cores to use)");
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

}  // namespace hpcai::cli
