// SPDX-License-Identifier: Apache-2.0
#include <ostream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/text.hpp>

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

ExitCode stats(const SurveyOptions& options, std::ostream& out) {
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
        parent, {"stats",
                 "Measure mean and standard deviation of a folder's pictures, as configuration; "
                 "bad pictures are left out and end with exit 4.",
                 {"hpcai500 data stats quickstart-data/train",
                  "hpcai500 data stats /data/imagenet/train --json"}});
    auto options = add_survey_options(command);
    set_action(command, context, [options, &context] { return stats(*options, context.out); });
}

}  // namespace hpcai::cli
