// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <memory>
#include <ostream>

#include <fmt/format.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/data/generate_climate.hpp>

#include "commands.hpp"
#include "picture_survey.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    std::string output;
    data::GenerateClimateOptions set;
    int threads = 0;
};

struct Knob {
    const char* name;
    double data::ClimateSettings::*setting;
    double largest;
    const char* meaning;
};
constexpr std::array<Knob, 8> kKnobs{{
    {"--amplitude", &data::ClimateSettings::amplitude, 10, "of what storms do to the fields"},
    {"--event-rate", &data::ClimateSettings::event_rate, 10, "times the usual storms"},
    {"--distractor-rate", &data::ClimateSettings::distractor_rate, 10,
     "times the usual unlabelled look-alikes"},
    {"--intensity-spread", &data::ClimateSettings::intensity_spread, 2,
     "of what a snapshot shows of a storm's strength, standard deviation of the logarithm"},
    {"--extent-spread", &data::ClimateSettings::extent_spread, 2,
     "of a box's sides around what is visible, likewise"},
    {"--label-dropout", &data::ClimateSettings::label_dropout, 1, "chance that a storm has no box"},
    {"--event-windows", &data::ClimateSettings::event_windows, 1,
     "share of windows that are laid around a storm"},
    {"--kept-share", &data::ClimateSettings::kept_share, 1,
     "of a box that a window must hold for the box to stay"},
}};

void add_knobs(CLI::App& command, data::ClimateSettings& settings) {
    for (const Knob& knob : kKnobs) {
        double& target = settings.*knob.setting;
        add_number_within(
            command, knob.name, [&target](double value) { target = value; }, {0, knob.largest},
            fmt::format("{}, 0 to {} ({})", knob.meaning, knob.largest, target));
    }
}

ExitCode generate(const Options& options, std::ostream& out) {
    data::GenerateClimateOptions set = options.set;
    set.file = options.output;
    data::generate_climate(set, threads_or_all(options.threads));
    out << fmt::format("{}: {} samples of {} channels, {} x {} pixels\n", printable(options.output),
                       format_count(set.samples), data::kClimateChannels, set.settings.height,
                       set.settings.width);
    return ExitCode::ok;
}

void add_size(CLI::App& command, const std::string& name, int& target, int largest) {
    add_integer(
        command, name, [&target](std::int64_t value) { target = static_cast<int>(value); },
        {data::kSmallestClimateSide, largest},
        fmt::format("pixels of the grid; less than {}: a window cut from it ({})", largest,
                    target));
}

void add_split(CLI::App& command, data::Split& split) {
    const auto store = [&split](const std::string& name) {
        require(name == "training" || name == "validation", ExitCode::usage,
                "data generate climate: --split: expected training or validation, got {}",
                in_quotes(name));
        split = name == "training" ? data::Split::training : data::Split::validation;
    };
    command
        .add_option_function<std::string>("--split", store,
                                          "training or validation: no sample is in both (training)")
        ->type_name("NAME");
}

}  // namespace

void add_data_generate_climate_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent,
        {"climate",
         "Make synthetic weather with labelled storms: an HDF5 file in the layout of the "
         "ExtremeWeather data.",
         {"hpcai500 data generate climate --output train.h5 --samples 64 --height 128 --width 192",
          "hpcai500 data generate climate --output test.h5 --samples 16 --split validation"}});
    add_text(command, "--output", options->output, "FILE", "file to write").required();
    data::GenerateClimateOptions& set = options->set;
    add_integer(
        command, "--samples", [&set](std::int64_t samples) { set.samples = samples; },
        {1, data::kMostGeneratedSamples}, fmt::format("snapshots ({})", set.samples));
    add_size(command, "--height", set.settings.height, data::kClimateRows);
    add_size(command, "--width", set.settings.width, data::kClimateColumns);
    add_integer(
        command, "--seed",
        [&set](std::int64_t seed) { set.settings.seed = static_cast<std::uint64_t>(seed); },
        {0, 9007199254740991},
        fmt::format("what is drawn follows from it ({})", set.settings.seed));
    add_split(command, set.split);
    add_knobs(command, set.settings);
    add_threads(command, options->threads);
    set_action(command, context, [options, &context] { return generate(*options, context.out); });
}

}  // namespace hpcai::cli
