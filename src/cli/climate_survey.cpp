// SPDX-License-Identifier: Apache-2.0
#include "climate_survey.hpp"

#include <filesystem>
#include <ostream>
#include <system_error>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/data/record_set.hpp>
#include <hpcai/data/transcode.hpp>

#include "json_text.hpp"

namespace hpcai::cli {
namespace {

namespace fs = std::filesystem;

bool is_hdf5_name(const fs::path& path) {
    return path.extension() == ".h5" || path.extension() == ".hdf5";
}

std::string describe_box_orders(const data::ClimateReport& report) {
    if (report.files_with_ranges == 0) return "read as corners";
    if (report.files_with_corners == 0) return "read as ranges";
    return fmt::format("read as corners in {} files, as ranges in {}", report.files_with_corners,
                       report.files_with_ranges);
}

std::string describe_climate(const data::ClimateReport& report) {
    std::string text =
        fmt::format("{} samples of {} channels, {} x {} pixels", format_count(report.samples),
                    report.channel_names.size(), report.height, report.width);
    for (std::size_t i = 0; i < report.boxes_per_category.size(); ++i) {
        text += fmt::format("{}{} {}", i == 0 ? "; boxes: " : ", ", data::kClimateCategoryNames[i],
                            format_count(report.boxes_per_category[i]));
    }
    return text + fmt::format(", {}; {} samples without a box, {} boxes dropped",
                              describe_box_orders(report), format_count(report.samples_without_box),
                              format_count(report.dropped_boxes));
}

nlohmann::ordered_json climate_json(const data::ClimateReport& report, const std::string& path) {
    nlohmann::ordered_json boxes;
    for (std::size_t i = 0; i < report.boxes_per_category.size(); ++i) {
        boxes[data::kClimateCategoryNames[i]] = report.boxes_per_category[i];
    }
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

data::ClimateReport survey_files(const SurveyOptions& options,
                                 const data::ClimateFileSettings& settings) {
    return data::survey_climate(data::climate_files_at(options.path), settings,
                                threads_or_all(options.threads));
}

void print_bad(const std::vector<std::string>& names, std::ostream& out) {
    for (const std::string& name : names) {
        out << "bad      " << printable(name) << ": not all values are finite\n";
    }
}

void require_none(const std::vector<std::string>& bad_samples, std::int64_t samples,
                  const std::string& path) {
    const std::size_t bad = bad_samples.size();
    require(bad == 0, ExitCode::data, "{}: {} of {} samples {} bad", printable(path), bad, samples,
            bad == 1 ? "is" : "are");
}

}  // namespace

DataKind kind_of(const std::string& path) {
    const fs::path place = path;
    std::error_code ignored;
    if (!fs::is_directory(place, ignored)) {
        return is_hdf5_name(place) ? DataKind::climate : DataKind::pictures;
    }
    if (fs::exists(place / data::kRecordIndexName, ignored)) return DataKind::records;
    for (const auto& entry : fs::directory_iterator(place, ignored)) {
        if (is_hdf5_name(entry.path())) return DataKind::climate;
    }
    return DataKind::pictures;
}

void add_box_order(Command command, data::ClimateFileSettings& settings) {
    command.add_choice("--box-order", settings.box_order,
                       {{"detect", data::BoxOrder::detect},
                        {"corners", data::BoxOrder::corners},
                        {"ranges", data::BoxOrder::ranges}},
                       "ORDER",
                       "columns of an HDF5 file's boxes: corners ymin,xmin,ymax,xmax; ranges "
                       "ymin,ymax,xmin,xmax (detect)");
}

ExitCode check_climate(const SurveyOptions& options, const data::ClimateFileSettings& settings,
                       std::ostream& out) {
    const data::ClimateReport report = survey_files(options, settings);
    if (options.json) {
        out << json_text(climate_json(report, options.path));
    } else {
        out << printable(options.path) << ": " << describe_climate(report) << '\n';
        print_bad(report.bad_samples, out);
    }
    require_none(report.bad_samples, report.samples, options.path);
    return ExitCode::ok;
}

ExitCode check_records(const SurveyOptions& options, std::ostream& out) {
    const data::RecordSet records(options.path);
    std::vector<std::string> bad_samples;
    for (std::int64_t i = 0; i < records.samples(); ++i) {
        if (!records.is_finite(i)) bad_samples.push_back(records.name(i));
    }
    const std::string dtype(tensor::name_of(records.dtype()));
    if (options.json) {
        out << json_text({{"path", options.path},
                          {"samples", records.samples()},
                          {"bad_samples", bad_samples},
                          {"height", records.height()},
                          {"width", records.width()},
                          {"channels", records.channel_names()},
                          {"dtype", dtype}});
    } else {
        out << fmt::format("{}: {} records of {} channels, {} x {} pixels, {}\n",
                           printable(options.path), format_count(records.samples()),
                           records.channels(), records.height(), records.width(), dtype);
        print_bad(bad_samples, out);
    }
    require_none(bad_samples, records.samples(), options.path);
    return ExitCode::ok;
}

ExitCode print_climate_statistics(const SurveyOptions& options,
                                  const data::ClimateFileSettings& settings, std::ostream& out) {
    const data::ClimateReport report = survey_files(options, settings);
    if (options.json) {
        nlohmann::ordered_json document = climate_json(report, options.path);
        document["mean"] = report.statistics.mean;
        document["standard_deviation"] = report.statistics.standard_deviation;
        document["minimum"] = report.minimum;
        document["maximum"] = report.maximum;
        out << json_text(document);
    } else {
        out << fmt::format("# {}: {}\n{:<8} {:>14} {:>14} {:>14} {:>14}\n", printable(options.path),
                           describe_climate(report), "channel", "mean", "deviation", "minimum",
                           "maximum");
        for (std::size_t c = 0; c < report.channel_names.size(); ++c) {
            out << fmt::format("{:<8} {:>14.7g} {:>14.7g} {:>14.7g} {:>14.7g}\n",
                               report.channel_names[c], report.statistics.mean[c],
                               report.statistics.standard_deviation[c], report.minimum[c],
                               report.maximum[c]);
        }
    }
    require_none(report.bad_samples, report.samples, options.path);
    return ExitCode::ok;
}

ExitCode print_record_statistics(const SurveyOptions& options, std::ostream& out) {
    const data::RecordSet records(options.path);
    if (options.json) {
        out << json_text({{"path", options.path},
                          {"samples", records.samples()},
                          {"channels", records.channel_names()},
                          {"mean", records.statistics().mean},
                          {"standard_deviation", records.statistics().standard_deviation}});
        return ExitCode::ok;
    }
    out << fmt::format("# {}: what {} records were normalized with\n{:<8} {:>14} {:>14}\n",
                       printable(options.path), format_count(records.samples()), "channel", "mean",
                       "deviation");
    for (std::size_t c = 0; c < records.statistics().mean.size(); ++c) {
        out << fmt::format("{:<8} {:>14.7g} {:>14.7g}\n", printable(records.channel_names()[c]),
                           records.statistics().mean[c],
                           records.statistics().standard_deviation[c]);
    }
    return ExitCode::ok;
}

}  // namespace hpcai::cli
