// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <ostream>

#include <fmt/core.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/data/generate.hpp>
#include <hpcai/data/photograph.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/verification/verdict.hpp>

#include "commands.hpp"
#include "survey.hpp"

namespace hpcai::cli {
namespace {

constexpr IntegerRange kSeeds{0, 9007199254740991};  // exact as numbers of JSON

struct PhotographsOptions {
    data::GenerateOptions set;
    int threads = 0;
};

ExitCode generate_photographs(const PhotographsOptions& options, const Context& context) {
    const data::GenerateOptions& set = options.set;
    const bool is_new = data::generate_photographs(set, threads_or_all(options.threads));
    context.out << fmt::format(
        "{}: {}{} classes, each with {} training and {} test images\n",
        printable(set.directory.string()), is_new ? "" : "exists already: ", set.classes,
        format_count(set.training_per_class), format_count(set.validation_per_class));
    return ExitCode::ok;
}

/// Adds an integer, whose default is the value of `target`.
void add_count(Command command, const std::string& name, auto& target, IntegerRange range,
               const std::string& meaning) {
    command.add_integer(name, target, range, fmt::format("{}; default: {}", meaning, target));
}

void add_set_options(Command command, data::GenerateOptions& set) {
    add_count(command, "--classes", set.classes, {1, data::kMaxPhotographClasses}, "classes");
    add_count(command, "--training-per-class", set.training_per_class, {1, 1'000'000},
              "images of a class in train/");
    add_count(command, "--validation-per-class", set.validation_per_class, {1, 1'000'000},
              "images of a class in val/");
    add_count(command, "--size", set.size, {16, 4096}, "longer side in pixels");
    add_count(command, "--quality", set.quality, {1, 100}, "JPEG quality");
    add_count(command, "--seed", set.seed, kSeeds, "seed of all random numbers");
}

void add_data_generate_photographs_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"photographs",
         "Generate synthetic photographs in the ImageNet layout, DIR/{train,val}/<class>/*.jpg. An "
         "existing set with the same options is kept.",
         {"hpcai500 data generate photographs --output quickstart-data --classes 8 --size 48",
          "hpcai500 data generate photographs --output /tmp/set --training-per-class 500 --seed "
          "7"}},
        generate_photographs);
    command.add_text("--output", options.set.directory, "DIR", "new or empty folder",
                     Presence::required);
    add_set_options(command, options.set);
    add_threads(command, options.threads);
}

struct ClimateOptions {
    data::GenerateClimateOptions set;
    int threads = 0;
};

void add_setting_options(Command command, data::ClimateSettings& settings) {
    for (const data::ClimateNumber& number : data::kClimateNumbers) {
        std::string name = number.name;
        std::ranges::replace(name, '_', '-');
        double& target = settings.*number.setting;
        command.add_number(
            "--" + name, target, between(0, number.maximum),
            fmt::format("{}, 0 to {}; default: {}", number.meaning, number.maximum, target));
    }
}

ExitCode generate_climate(const ClimateOptions& options, const Context& context) {
    const data::GenerateClimateOptions& set = options.set;
    data::generate_climate(set, threads_or_all(options.threads));
    context.out << fmt::format("{}: {} of {} channels, {} x {} pixels\n",
                               printable(set.file.string()), counted(set.samples, "sample"),
                               data::kClimateChannels, set.settings.height, set.settings.width);
    return ExitCode::ok;
}

void add_size(Command command, const std::string& name, int& target, int largest) {
    add_count(command, name, target, {data::kMinClimateSide, largest},
              fmt::format("pixels; below {}, each sample is a part of the weather grid", largest));
}

void add_data_generate_climate_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"climate",
         "Generate synthetic weather with labelled storms as an HDF5 file in the ExtremeWeather "
         "layout.",
         {"hpcai500 data generate climate --output train.h5 --samples 64 --height 128 --width 192",
          "hpcai500 data generate climate --output test.h5 --samples 16 --split validation"}},
        generate_climate);
    data::GenerateClimateOptions& set = options.set;
    command.add_text("--output", set.file, "FILE", "file to write", Presence::required);
    add_count(command, "--samples", set.samples, {1, 100'000}, "snapshots");
    add_size(command, "--height", set.settings.height, data::kClimateRows);
    add_size(command, "--width", set.settings.width, data::kClimateColumns);
    add_count(command, "--seed", set.settings.seed, kSeeds, "seed of all random numbers");
    command.add_choice(
        "--split", set.split,
        {{"training", data::Split::training}, {"validation", data::Split::validation}},
        "training and validation have different samples; default: training");
    add_setting_options(command, set.settings);
    add_threads(command, options.threads);
}

struct MiniOptions {
    std::string output;
    int threads = 0;
};

// Settings that affect the digest of the samples, and those that make the configuration legal.
constexpr const char* kMiniPhotographs =
    "workload: {problem_class: mini, classes: 24, image_size: 48}\n"
    "data: {kind: image_folder, path: '-', validation_path: '-'}";
constexpr const char* kMiniWeather =
    "workload: {kind: extreme_weather, problem_class: mini, model: faster_rcnn_r50_fpn,\n"
    "  classes: 4, image_size: 96, image_width: 128, channels: 16}\n"
    "bagging: {aggregation: wbf, out_of_bag: false}\n"
    "data: {kind: climate_hdf5, path: '-', validation_path: '-', climate_precision: bf16}";

/// Throws Error(data), with the command that removes the set, if the set has other samples.
void check_mini_set(const std::filesystem::path& training, const std::filesystem::path& validation,
                    const char* settings) {
    config::Config config = config::parse(settings, "problem class mini", {});
    config.data.path = training.string();
    config.data.validation_path = validation.string();
    std::string damage = "a sample differs from the generated one";
    try {
        const auto alone = comm::make_self_communicator();
        const data::SampleSets samples = data::make_sample_sets(config, *alone);
        if (samples.sha256 == verification::required_samples_sha256(config.workload)) return;
    } catch (const Error& error) {
        damage = error.what();
    }
    const std::string folder = training.parent_path().string();
    throw Error(ExitCode::data,
                fmt::format("{}: {}; remove the set with `rm -r {}` and generate it again",
                            printable(folder), damage, printable(shell_quote(folder))));
}

ExitCode generate_mini(const MiniOptions& options, const Context& context) {
    const auto kept = data::generate_mini(options.output, threads_or_all(options.threads));
    const std::filesystem::path output = options.output;
    if (!kept.empty()) {
        check_mini_set(output / "photographs/train", output / "photographs/val", kMiniPhotographs);
        check_mini_set(output / "weather/train.h5", output / "weather/test.h5", kMiniWeather);
    }
    for (const std::filesystem::path& path : kept)
        context.out << printable(path.string()) << ": exists already, with the right samples\n";
    context.out << fmt::format("{}: the photographs and the weather of problem class mini\n",
                               printable(options.output));
    return ExitCode::ok;
}

void add_data_generate_mini_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"mini",
         "Generate the data sets of problem class mini, 0.8 GB. Existing parts are checked and "
         "kept.",
         {"hpcai500 data generate mini --output mini-data"}},
        generate_mini);
    command.add_text("--output", options.output, "DIR", "folder of the sets", Presence::required);
    add_threads(command, options.threads);
}

}  // namespace

void add_data_generate_command(Command parent) {
    const Command command =
        parent.add_command({"generate",
                            "Generate synthetic data in the formats of real data.",
                            {"hpcai500 data generate mini --output mini-data",
                             "hpcai500 data generate photographs --output quickstart-data",
                             "hpcai500 data generate climate --output train.h5 --samples 64"}});
    add_data_generate_mini_command(command);
    add_data_generate_photographs_command(command);
    add_data_generate_climate_command(command);
}

}  // namespace hpcai::cli
