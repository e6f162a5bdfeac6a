// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <optional>
#include <ostream>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/config/nearest.hpp>
#include <hpcai/data/field_picture.hpp>
#include <hpcai/data/pack.hpp>
#include <hpcai/data/sample_index.hpp>
#include <hpcai/data/transcode.hpp>
#include <hpcai/evaluation/coco_json.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/workloads/workload.hpp>

#include "commands.hpp"
#include "survey.hpp"

namespace hpcai::cli {
namespace {

struct IndexOptions {
    std::string folder;
    std::string output;
};

ExitCode index_folder(const IndexOptions& options, const Context& context) {
    require_replaceable("data index: --output", options.output, "{\"classes\":[");
    const data::SampleIndex index = data::scan_image_folder(options.folder);
    data::write_index(index, options.output);
    context.out << fmt::format("wrote {}: {} images of {} classes\n", printable(options.output),
                               format_count(std::ssize(index.samples)),
                               format_count(std::ssize(index.classes)));
    return ExitCode::ok;
}

void add_data_index_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"index",
         "Write an index of a folder's images. data.path can name it to avoid a scan.",
         {"hpcai500 data index /data/imagenet/train --output /data/imagenet/train.jsonl",
          "hpcai500 data index quickstart-data/val --output quickstart-data/val.jsonl"}},
        index_folder);
    command.add_argument("FOLDER", options.folder, "folder of class folders");
    command.add_text("--output", options.output, "FILE", "file to write", Presence::required);
}

ExitCode pack(const data::PackOptions& given, const Context& context) {
    data::PackOptions options = given;
    require(kind_of(options.input) == DataKind::pictures, ExitCode::usage,
            "data pack: {}: expected class folders; VOC, COCO and weather data cannot be packed",
            printable(options.input));
    options.threads = threads_or_all(options.threads);
    const data::PackReport report = data::pack_pictures(options);
    const auto samples = std::ssize(report.index.samples);
    std::int64_t unreadable = 0;
    for (std::int64_t i = 0; i < samples; ++i) {
        if (!report.index.ranges[i].sha256.empty()) continue;
        context.out << fmt::format("unreadable  {}\n", report.index.samples[i].path);
        ++unreadable;
    }
    context.out << fmt::format("{}: {} images in {}; shards written earlier: {}\n",
                               printable(options.output), format_count(samples),
                               counted(std::ssize(report.index.shards), "shard"),
                               report.kept_shards);
    require(unreadable == 0, ExitCode::data, "{}: {} of {} images could not be read",
            printable(options.output), unreadable, samples);
    return ExitCode::ok;
}

void add_data_pack_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"pack",
         "Copy class folders into tar files (WebDataset) with an index. data.path can name the "
         "output. Repeat an interrupted command to resume it.",
         {"hpcai500 data pack /data/imagenet/train --output packed/train",
          "hpcai500 data pack quickstart-data/val --output packed/val --shard-mib 64"}},
        pack);
    command.add_argument("FOLDER", options.input, "folder of class folders, or its index");
    command.add_text("--output", options.output, "DIR", "folder of tar files", Presence::required);
    command.add_integer("--shard-mib", options.shard_mib, {1, 1 << 20},
                        "MiB of images in a tar file; default: 512");
    add_threads(command, options.threads);
}

struct TranscodeOptions {
    std::string input;
    data::TranscodeOptions set;
};

ExitCode transcode(const TranscodeOptions& options, const Context& context) {
    data::TranscodeOptions set = options.set;
    set.files = data::climate_files_at(options.input);
    set.threads = threads_or_all(set.threads);
    const data::TranscodeReport report = data::transcode(set);
    context.out << fmt::format(
        "{}: {}, {}; {} skipped, {} dropped\n", printable(set.output.string()),
        counted(report.samples, "record"), format_bytes(report.bytes),
        counted(report.skipped_samples, "bad sample"), counted(report.dropped_boxes, "box"));
    return ExitCode::ok;
}

void add_data_transcode_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"transcode",
         "Convert ExtremeWeather HDF5 files to normalized, memory-mappable records, which are "
         "faster to read.",
         {"hpcai500 data transcode /data/extreme_weather/train --output train-records",
          "hpcai500 data transcode climo_1984.h5 --output test-records --statistics-from "
          "train-records"}},
        transcode);
    command.add_argument("PATH", options.input, "HDF5 file, or folder of such files");
    command.add_text("--output", options.set.output, "DIR", "new or empty folder",
                     Presence::required);
    command.add_text("--statistics-from", options.set.statistics_from, "DIR",
                     "use mean and standard deviation of these records; a test set needs those of "
                     "the training set");
    command.add_choice(
        "--precision", options.set.dtype,
        {{"fp32", tensor::DType::f32}, {"fp16", tensor::DType::f16}, {"bf16", tensor::DType::bf16}},
        "precision of the records; default: fp16");
    add_box_order(command, options.set.source);
    command.add_flag("--skip-bad-samples", options.set.skip_bad_samples,
                     "skip samples with non-finite values");
    add_threads(command, options.set.threads);
}

struct ShowOptions {
    std::string path;
    std::string output;
    std::string channel = "TMQ";
    std::int64_t sample = 0;
    double lowest_score = 0.5;
    data::ClimateFileSettings source;
};

int channel_number(const std::vector<std::string>& names, const std::string& wanted) {
    const auto found = std::ranges::find(names, wanted);
    require(found != names.end(), ExitCode::usage,
            "data show: --channel: expected one of {}, got {}{}", fmt::join(names, ", "),
            in_quotes(wanted), config::did_you_mean(wanted, names));
    return static_cast<int>(found - names.begin());
}

void require_sample(const ShowOptions& options, std::int64_t samples) {
    require(options.sample < samples, ExitCode::usage,
            "data show: --sample: expected 0 to {}, got {}", samples - 1, options.sample);
}

data::LabelledField field_at(const ShowOptions& options) {
    const DataKind kind = kind_of(options.path);
    require(kind == DataKind::climate || kind == DataKind::records, ExitCode::usage,
            "data show: {}: expected HDF5 files, a folder of records or a result directory",
            printable(options.path));
    if (kind == DataKind::records) {
        const data::RecordSet records(options.path);
        require_sample(options, records.samples());
        return data::read_field(records, options.sample,
                                channel_number(records.channel_names(), options.channel));
    }
    std::optional<data::ClimateFile> file;  // after the loop, the file that has the sample
    std::int64_t first = 0, samples = 0;
    for (const std::filesystem::path& path : data::climate_files_at(options.path)) {
        first = samples;
        file.emplace(path, options.source);
        samples += file->samples();
        if (options.sample < samples) break;
    }
    require_sample(options, samples);
    return data::read_field(*file, options.sample - first,
                            channel_number(data::channel_names(file->level()), options.channel));
}

data::Box corners_of(const evaluation::Box& box, std::int32_t category) {
    return {static_cast<float>(box.x), static_cast<float>(box.y),
            static_cast<float>(box.x + box.width), static_cast<float>(box.y + box.height),
            category};
}

struct DetectionScores {
    std::vector<double> drawn;  // in the order of LabelledField::detections
    double highest = 0;         // of the sample, drawn or not; 0: no detection
};

/// Returns a test sample of the result `options.path` with the detections; sets `scores`.
data::LabelledField tested_field(const ShowOptions& options, DetectionScores& scores) {
    results::require_one_run(options.path);
    const std::filesystem::path folder = std::filesystem::path(options.path) / "evaluation";
    const config::Config config = results::read_config(options.path);
    require(config::has_fields(config.data) &&
                config::task_of(config.workload) == config::Task::detection,
            ExitCode::usage, "data show: {}: expected a result of workload extreme_weather",
            printable(options.path));
    const workloads::PredictionFiles& files = workloads::workload_of(config.workload).files;
    const auto annotations = evaluation::read_coco_annotations(folder / files.labels);
    require_sample(options, annotations.truth.images);
    ShowOptions source = options;
    source.path = config.data.validation_path;
    const auto names = data::channel_names(data::GeopotentialLevel::hpa_1000);
    data::LabelledField field =
        config.data.kind == config::DataKind::climate_synthetic
            ? data::read_field(data::ClimateGenerator(data::climate_settings(config)),
                               options.sample, channel_number(names, options.channel))
            : field_at(source);
    std::vector<data::Box> labels;  // also empty if the sample was not scored
    for (const evaluation::LabelledBox& label : annotations.truth.boxes)
        if (label.image == options.sample) labels.push_back(corners_of(label.box, label.category));
    require(labels.empty() || labels == field.boxes, ExitCode::data,
            "data show: {}: the labels of sample {} differ from those of the test data",
            printable(options.path), options.sample);
    for (const evaluation::Detection& detection :
         evaluation::read_coco_detections(folder / files.ensemble, annotations)) {
        if (detection.image != options.sample) continue;
        scores.highest = std::max(scores.highest, detection.score);
        if (detection.score < options.lowest_score) continue;
        field.detections.push_back(corners_of(detection.box, detection.category));
        scores.drawn.push_back(detection.score);
    }
    return field;
}

std::string box_line(const data::Box& box) {
    const auto category = static_cast<std::size_t>(box.category) - 1;
    return fmt::format("{:<22} x {:.1f} to {:.1f}, y {:.1f} to {:.1f}",
                       category < data::kClimateCategories
                           ? data::kClimateCategoryNames[category]
                           : "category " + std::to_string(box.category),
                       box.x1, box.x2, box.y1, box.y2);
}

ExitCode show(const ShowOptions& options, const Context& context) {
    require(options.output.ends_with(".png"), ExitCode::usage,
            "data show: --output: expected a file *.png, got {}", in_quotes(options.output));
    std::error_code ignored;
    const bool is_result = std::filesystem::exists(options.path + "/config.yaml", ignored);
    DetectionScores scores;
    const data::LabelledField field = is_result ? tested_field(options, scores) : field_at(options);
    const data::Image image = data::draw_field(field);
    const std::vector<std::uint8_t> png = data::encode_png(image.view());
    const storage::Bytes bytes = std::as_bytes(std::span(png));
    require_replaceable("data show: --output", options.output, "\x89PNG");
    storage::write_file_durably(options.output, {&bytes, 1});
    context.out << fmt::format("wrote {}: {} of sample {}, {} x {} pixels\n",
                               printable(options.output), options.channel, options.sample,
                               field.height, field.width);
    const bool has_boxes = !field.boxes.empty() || !field.detections.empty();
    context.out << (has_boxes ? "y counts rows from the south, at the bottom of the picture\n"
                              : "the sample has no box\n");
    for (const data::Box& box : field.boxes) context.out << box_line(box) << '\n';
    for (std::size_t i = 0; i < scores.drawn.size(); ++i) {
        context.out << fmt::format("{}, detected with score {:.2f}\n",
                                   box_line(field.detections[i]), scores.drawn[i]);
    }
    if (is_result && scores.drawn.empty()) {
        context.out << fmt::format(
            "no detection reaches --lowest-score {}; the highest score is {:.3g}\n",
            options.lowest_score, scores.highest);
    }
    return ExitCode::ok;
}

void add_data_show_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"show",
         "Draw one channel of one sample with its boxes as a PNG, north at the top. For a "
         "result, dashed boxes are the ensemble's detections in a test sample.",
         {"hpcai500 data show climo_1984.h5 --sample 17 --channel PSL --output 17.png",
          "hpcai500 data show results/weather --sample 3 --output boxes.png"}},
        show);
    command.add_argument("PATH", options.path,
                         "HDF5 file, folder of HDF5 or transcoded files, or result directory");
    command.add_text("--output", options.output, "FILE", "file *.png to write", Presence::required);
    command.add_integer("--sample", options.sample, {0, 1'000'000'000},
                        "number of the sample; default: 0");
    command.add_text("--channel", options.channel, "NAME", "name of the channel; default: TMQ");
    command.add_number("--lowest-score", options.lowest_score, between(0, 1),
                       "minimum score of a detection; default: 0.5");
    add_box_order(command, options.source);
}

}  // namespace

void add_data_command(Command parent) {
    const Command command = parent.add_command(
        {"data",
         "Generate, check, measure, convert and show data sets.",
         {"hpcai500 data generate photographs --output quickstart-data --classes 8",
          "hpcai500 data check quickstart-data/train"}});
    for (const auto add_command :
         {add_data_generate_command, add_data_check_command, add_data_stats_command,
          add_data_index_command, add_data_pack_command, add_data_transcode_command,
          add_data_show_command})
        add_command(command);
}

}  // namespace hpcai::cli
