// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/text.hpp>

#include "climate_survey.hpp"
#include "commands.hpp"
#include "picture_survey.hpp"

namespace hpcai::cli {
namespace {

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

ExitCode stats(const SurveyOptions& options, const data::ClimateFileSettings& settings,
               std::ostream& out) {
    const DataKind kind = kind_of(options.path);
    if (kind == DataKind::climate) return print_climate_statistics(options, settings, out);
    if (kind == DataKind::records) return print_record_statistics(options, out);
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

}  // namespace

void add_data_stats_command(CLI::App& parent, Context& context) {
    CLI::App& command = add_command(
        parent,
        {"stats",
         "Measure mean and standard deviation of a folder's pictures, as configuration, or of "
         "ExtremeWeather files; bad ones are left out and end with exit 4.",
         {"hpcai500 data stats quickstart-data/train",
          "hpcai500 data stats climo_1984.h5 --json"}});
    auto options = add_survey_options(command);
    auto settings = std::make_shared<data::ClimateFileSettings>();
    add_box_order(command, *settings);
    set_action(command, context,
               [options, settings, &context] { return stats(*options, *settings, context.out); });
}

}  // namespace hpcai::cli
