// SPDX-License-Identifier: Apache-2.0
#include "survey.hpp"

#include <filesystem>
#include <ostream>
#include <system_error>

#include <hpcai/base/text.hpp>
#include <hpcai/data/record_set.hpp>
#include <hpcai/device/cpu_device.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

namespace fs = std::filesystem;

bool is_hdf5_name(const fs::path& path) {
    return path.extension() == ".h5" || path.extension() == ".hdf5";
}

void add_survey_options(Command command, SurveyOptions& options) {
    command.add_argument("PATH", options.path, "folder or file of the data set");
    add_threads(command, options.threads);
    add_json_flag(command, options.json);
    add_box_order(command, options.climate);
}

/// Prints the survey, then throws Error if samples are bad.
ExitCode print_survey(const Survey& survey, const SurveyOptions& options, std::ostream& out) {
    out << (options.json ? json_text(survey.json) : survey.text);
    require(survey.bad == 0, survey.code, "{}: {} of {} {} {} bad", printable(options.path),
            survey.bad, survey.samples, survey.samples_name, survey.bad == 1 ? "is" : "are");
    return ExitCode::ok;
}

void reject_unused_options(const SurveyOptions& options) {
    const DataKind kind = kind_of(options.path);
    require(options.split.empty() || kind == DataKind::voc, ExitCode::usage,
            "data check: --split: expected with a Pascal VOC folder only, got {}",
            in_quotes(options.split));
    require(options.pictures.empty() || kind == DataKind::coco, ExitCode::usage,
            "data check: --pictures: expected with a COCO file (*.json) only, got {}",
            in_quotes(options.pictures));
}

Survey check_data(const SurveyOptions& options) {
    const DataKind kind = kind_of(options.path);
    return kind == DataKind::climate    ? check_climate(options)
           : kind == DataKind::records  ? check_records(options)
           : kind == DataKind::pictures ? check_pictures(options)
                                        : check_annotations(options);
}

ExitCode check(const SurveyOptions& options, const Context& context) {
    reject_unused_options(options);
    return print_survey(check_data(options), options, context.out);
}

ExitCode stats(const SurveyOptions& options, const Context& context) {
    const DataKind kind = kind_of(options.path);
    return print_survey(kind == DataKind::climate   ? climate_statistics(options)
                        : kind == DataKind::records ? record_statistics(options)
                                                    : picture_statistics(options),
                        options, context.out);
}

}  // namespace

DataKind kind_of(const std::string& path) {
    const fs::path file = path;
    std::error_code ignored;
    const bool is_yaml = file.extension() == ".yaml" || file.extension() == ".yml";
    require(!is_yaml || !fs::is_regular_file(file, ignored), ExitCode::usage,
            "{0}: expected images, Pascal VOC, COCO or ExtremeWeather data, got a configuration "
            "file; `hpcai500 doctor --config {0}` checks it and its data",
            printable(shell_quote(path)));
    if (fs::is_directory(file / "ImageSets" / "Main", ignored) &&
        fs::is_directory(file / "Annotations", ignored))
        return DataKind::voc;
    if (file.extension() == ".json") return DataKind::coco;
    if (!fs::is_directory(file, ignored))
        return is_hdf5_name(file) ? DataKind::climate : DataKind::pictures;
    if (fs::exists(file / data::kRecordIndexName, ignored)) return DataKind::records;
    for (const auto& entry : fs::directory_iterator(file, ignored))
        if (is_hdf5_name(entry.path())) return DataKind::climate;
    return DataKind::pictures;
}

void add_box_order(Command command, data::ClimateFileSettings& settings) {
    command.add_choice("--box-order", settings.box_order,
                       {{"detect", data::BoxOrder::detect},
                        {"corners", data::BoxOrder::corners},
                        {"ranges", data::BoxOrder::ranges}},
                       "box columns in HDF5: corners ymin,xmin,ymax,xmax; ranges "
                       "ymin,ymax,xmin,xmax; default: detect");
}

void add_threads(Command command, int& threads) {
    threads = 0;
    command.add_integer("--threads", threads, {0, 1024}, "threads; 0 (default): available cores");
}

int threads_or_all(int threads) {
    return threads > 0 ? threads : device::count_cores().allowed;
}

void add_data_check_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"check",
         "Read every sample and name the damaged ones (exit code 4). PATH has images, Pascal VOC, "
         "COCO (*.json) or ExtremeWeather data (HDF5 or transcoded).",
         {"hpcai500 data check /data/imagenet/train",
          "hpcai500 data check VOCdevkit/VOC2007 --split test",
          "hpcai500 data check annotations/instances_val2017.json --pictures val2017",
          "hpcai500 data check climo_1984.h5 --threads 2 --json"}},
        check);
    add_survey_options(command, options);
    command.add_text("--split", options.split, "NAME",
                     "list in ImageSets/Main of a Pascal VOC folder; default: train");
    command.add_text("--pictures", options.pictures, "FOLDER",
                     "folder of the images of a COCO file; default: the file's folder");
}

void add_data_stats_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"stats",
         "Compute mean and standard deviation of images (printed as configuration) or of "
         "ExtremeWeather files. Damaged samples are skipped (exit code 4).",
         {"hpcai500 data stats quickstart-data/train", "hpcai500 data stats climo_1984.h5 --json"}},
        stats);
    add_survey_options(command, options);
}

}  // namespace hpcai::cli
