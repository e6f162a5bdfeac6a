// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>

#include <hpcai/benchmark/roofline.hpp>
#include <hpcai/report/json.hpp>
#include <hpcai/report/roofline.hpp>
#include <hpcai/storage/file.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

constexpr double kMostSeconds = 3600;

struct Options {
    benchmark::RooflineRequest request;
    ConfigSource config;
    std::string device;
    std::string precision;
    std::string output;
    bool json = false;
};

ExitCode roofline(const Options& options, const Context& context) {
    benchmark::RooflineRequest request = options.request;
    request.config_path = options.config.path;
    request.overrides = options.config.overrides;
    if (!options.device.empty()) request.overrides.push_back("device.kind=" + options.device);
    if (!options.precision.empty()) {
        request.overrides.push_back("training.precision=" + options.precision);
        request.one_precision = true;
    }
    request.command_line = context.command_line;
    return benchmark::run_roofline(request, [&](const RooflineRecord& record) {
        const std::string json = report::to_json(record);
        if (!options.output.empty()) storage::write_file_durably(options.output, json);
        context.out << (options.json ? json : report::roofline_text(record)) << std::flush;
    });
}

}  // namespace

void add_roofline_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent,
        {"roofline",
         "Measure how fast this machine can be: matrix products, the model's convolutions, memory, "
         "sums over the ranks of a launch, and whole training steps, for `plan` and `bench`.",
         {"hpcai500 roofline --config configs/ucmerced.yaml --output roofline.json",
          "mpirun -np 2 hpcai500 roofline --config configs/quickstart.yaml "
          "--seconds "
          "30 --output roofline.json"}});
    add_config_options(command, options->config, Presence::optional);
    add_text(command, "--device", options->device, "KIND", "device.kind: auto, cpu or cuda");
    add_text(command, "--precision", options->precision, "P",
             "training.precision, and no other one; default: all that the device has");
    add_number_within(
        command, "--seconds", [options](double seconds) { options->request.seconds = seconds; },
        {1, kMostSeconds}, "to measure for, about (20)");
    add_text(command, "--output", options->output, "FILE", "where to write the JSON, too");
    add_json_flag(command, options->json);
    set_action(command, context, [options, &context] { return roofline(*options, context); });
}

}  // namespace hpcai::cli
