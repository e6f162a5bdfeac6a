// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/data/record_set.hpp>
#include <hpcai/data/transcode.hpp>

#include "survey.hpp"

namespace hpcai::cli {
namespace {

std::string describe_box_orders(const data::ClimateReport& report) {
    if (report.files_with_ranges == 0) return "read as corners";
    if (report.files_with_corners == 0) return "read as ranges";
    return fmt::format("read as corners in {} files, as ranges in {}", report.files_with_corners,
                       report.files_with_ranges);
}

std::string describe_climate(const data::ClimateReport& report) {
    std::string text =
        fmt::format("{} of {} channels, {} x {} pixels", counted(report.samples, "sample"),
                    report.channel_names.size(), report.height, report.width);
    for (std::size_t i = 0; i < report.boxes_per_category.size(); ++i) {
        text += fmt::format("{}{} {}", i == 0 ? "; boxes: " : ", ", data::kClimateCategoryNames[i],
                            format_count(report.boxes_per_category[i]));
    }
    return text + fmt::format(", {}; {} without a box, {} dropped", describe_box_orders(report),
                              counted(report.samples_without_box, "sample"),
                              counted(report.dropped_boxes, "box"));
}

nlohmann::ordered_json climate_json(const data::ClimateReport& report, const std::string& path) {
    nlohmann::ordered_json boxes;
    for (std::size_t i = 0; i < report.boxes_per_category.size(); ++i)
        boxes[data::kClimateCategoryNames[i]] = report.boxes_per_category[i];
    return {{"path", path},
            {"samples", report.samples},
            {"bad_samples", report.bad_samples},
            {"height", report.height},
            {"width", report.width},
            {"channels", report.channel_names},
            {"boxes", boxes},
            {"files_by_box_order",
             {{"corners", report.files_with_corners}, {"ranges", report.files_with_ranges}}},
            {"samples_without_box", report.samples_without_box},
            {"dropped_boxes", report.dropped_boxes}};
}

data::ClimateReport read_all(const SurveyOptions& options) {
    return data::survey_climate(data::climate_files_at(options.path), options.climate,
                                threads_or_all(options.threads));
}

std::string text_of_bad(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) {
        text += fmt::format("bad      {}: not all values are finite\n", printable(name));
    }
    return text;
}

}  // namespace

Survey check_climate(const SurveyOptions& options) {
    const data::ClimateReport report = read_all(options);
    return {.text = fmt::format("{}: {}\n", printable(options.path), describe_climate(report)) +
                    text_of_bad(report.bad_samples),
            .json = climate_json(report, options.path),
            .samples = report.samples,
            .bad = report.bad_samples.size()};
}

Survey check_records(const SurveyOptions& options) {
    const data::RecordSet records(options.path);
    std::vector<std::string> bad_samples;
    for (std::int64_t i = 0; i < records.samples(); ++i)
        if (!records.is_finite(i)) bad_samples.push_back(records.name(i));
    const std::string dtype(tensor::name_of(records.dtype()));
    return {.text = fmt::format("{}: {} of {} channels, {} x {} pixels, {}\n",
                                printable(options.path), counted(records.samples(), "record"),
                                records.channels(), records.height(), records.width(), dtype) +
                    text_of_bad(bad_samples),
            .json = {{"path", options.path},
                     {"samples", records.samples()},
                     {"bad_samples", bad_samples},
                     {"height", records.height()},
                     {"width", records.width()},
                     {"channels", records.channel_names()},
                     {"dtype", dtype}},
            .samples = records.samples(),
            .bad = bad_samples.size()};
}

Survey climate_statistics(const SurveyOptions& options) {
    const data::ClimateReport report = read_all(options);
    Survey survey{.text = fmt::format("# {}: {}\n{:<8} {:>14} {:>14} {:>14} {:>14}\n",
                                      printable(options.path), describe_climate(report), "channel",
                                      "mean", "deviation", "minimum", "maximum"),
                  .json = climate_json(report, options.path),
                  .samples = report.samples,
                  .bad = report.bad_samples.size()};
    for (std::size_t c = 0; c < report.channel_names.size(); ++c) {
        survey.text +=
            fmt::format("{:<8} {:>14.7g} {:>14.7g} {:>14.7g} {:>14.7g}\n", report.channel_names[c],
                        report.statistics.mean[c], report.statistics.standard_deviation[c],
                        report.minimum[c], report.maximum[c]);
    }
    survey.json["mean"] = report.statistics.mean;
    survey.json["standard_deviation"] = report.statistics.standard_deviation;
    survey.json["minimum"] = report.minimum;
    survey.json["maximum"] = report.maximum;
    return survey;
}

Survey record_statistics(const SurveyOptions& options) {
    const data::RecordSet records(options.path);
    Survey survey{.text = fmt::format("# {}: normalization of {}\n{:<8} {:>14} {:>14}\n",
                                      printable(options.path), counted(records.samples(), "record"),
                                      "channel", "mean", "deviation"),
                  .json = {{"path", options.path},
                           {"samples", records.samples()},
                           {"channels", records.channel_names()},
                           {"mean", records.statistics().mean},
                           {"standard_deviation", records.statistics().standard_deviation}}};
    for (std::size_t c = 0; c < records.statistics().mean.size(); ++c) {
        survey.text +=
            fmt::format("{:<8} {:>14.7g} {:>14.7g}\n", printable(records.channel_names()[c]),
                        records.statistics().mean[c], records.statistics().standard_deviation[c]);
    }
    return survey;
}

}  // namespace hpcai::cli
