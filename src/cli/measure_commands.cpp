// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <ostream>

#include <hpcai/data/sample_set.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/record_text.hpp>
#include <hpcai/speed/bench.hpp>
#include <hpcai/speed/doctor.hpp>
#include <hpcai/speed/roofline.hpp>
#include <hpcai/speed/validate.hpp>
#include <hpcai/storage/file.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct BenchOptions {
    config::Sources config;
    std::int64_t steps = 10;
    std::string roofline;
    std::string svg;
    bool json = false;
};

ExitCode bench(const BenchOptions& options, const Context& context) {
    require(options.roofline.empty() == options.svg.empty(), ExitCode::usage,
            "bench: --roofline and --svg: expected both or neither, got one");
    require_replaceable("bench: --svg", options.svg, "<svg ");
    std::optional<RooflineRecord> roofline;
    if (!options.roofline.empty()) roofline = records::read_file<RooflineRecord>(options.roofline);
    const speed::BenchReport report =
        speed::run_bench(data::load_config(options.config), options.steps);
    if (roofline) storage::write_file_durably(options.svg, speed::bench_svg(report, *roofline));
    context.out << (options.json ? speed::bench_json(report) : speed::bench_text(report));
    return ExitCode::ok;
}

constexpr double kMaxSeconds = 3600;

struct RooflineOptions {
    speed::RooflineRequest request;
    std::string device;
    std::string precision;
    std::string output;
    std::string input;
    bool json = false;
};

std::string input_table(const RooflineOptions& options, config::Sources sources) {
    require(options.output.empty() && !options.json, ExitCode::usage,
            "roofline --input: prints a table; expected neither --output nor --json");
    sources.overrides.emplace_back("data.kind=image_folder");
    for (const char* key : {"data.path=", "data.validation_path="}) {
        sources.overrides.push_back(key + options.input);
    }
    return speed::measure_input(data::load_config(sources), options.request.seconds);
}

ExitCode roofline(const RooflineOptions& options, const Context& context) {
    speed::RooflineRequest request = options.request;
    if (!options.device.empty())
        request.config.overrides.push_back("device.kind=" + options.device);
    if (!options.precision.empty()) {
        request.config.overrides.push_back("training.precision=" + options.precision);
        request.one_precision = true;
    }
    request.command_line = context.command_line;
    if (!options.input.empty()) {
        context.out << input_table(options, request.config);
        return ExitCode::ok;
    }
    if (!options.output.empty())
        require_replaceable("roofline: --output", options.output,
                            "{\n  \"schema\": \"hpcai500-roofline");
    return speed::run_roofline(request, [&](const RooflineRecord& record) {
        const std::string json = records::to_json(record);
        if (!options.output.empty()) storage::write_file_durably(options.output, json);
        context.out << (options.json ? json : report::roofline_text(record)) << std::flush;
    });
}

struct ValidateOptions {
    config::Sources config;
    speed::ValidateRequest request;
    std::string output;
    bool json = false;
};

ExitCode validate(const ValidateOptions& options, const Context& context) {
    if (!options.output.empty()) {
        require_replaceable("validate: --output", options.output,
                            "{\n  \"schema\": \"hpcai500-validate");
    }
    const std::unique_ptr<Logger> log = make_logger("validate", "");
    const speed::ValidateReport report =
        speed::run_validate(data::load_config(options.config), options.request, *log);
    const std::string json = speed::validate_json(report);
    context.out << (options.json ? json : speed::validate_text(report)) << std::flush;
    if (!options.output.empty()) storage::write_file_durably(options.output, json);
    return report.passed ? ExitCode::ok : ExitCode::mismatch;
}

ExitCode doctor(const speed::DoctorRequest& options, const Context& context) {
    speed::DoctorRequest request = options;
    request.command_line = context.command_line;
    return speed::run_doctor(request, context.out);
}

}  // namespace

void add_bench_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"bench",
         "Benchmark one training step on a single rank with random data in memory, in total and by "
         "operation. Ignores the section `parallel`.",
         {"hpcai500 bench --config configs/imagenet_goyal.yaml --set training.batch_size=32",
          "hpcai500 bench --config configs/ucmerced.yaml --set device.threads=2 --steps 20 "
          "--json"}},
        bench);
    add_config_options(command, options.config, Presence::required);
    command.add_integer("--steps", options.steps, {1, 1000},
                        "measurements of the step time; default: 10");
    command.add_text("--roofline", options.roofline, "FILE",
                     "output of `hpcai500 roofline`, for --svg");
    command.add_text("--svg", options.svg, "FILE", "file for a roofline plot of the operations");
    add_json_flag(command, options.json);
}

void add_roofline_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"roofline",
         "Measure peak rates: matrix products, convolutions, memory, all-reduces, training steps. "
         "`plan` and `bench` use them.",
         {"hpcai500 roofline --config configs/ucmerced.yaml --output roofline.json",
          "mpirun -np 2 hpcai500 roofline --config configs/quickstart.yaml "
          "--seconds 30 --output roofline.json"}},
        roofline);
    add_config_options(command, options.request.config);
    command.add_text("--device", options.device, "KIND", "device.kind: auto, cpu or cuda");
    command.add_text(
        "--precision", options.precision, "P",
        "training.precision of all measurements; default: all that the device supports; training "
        "steps use that of the configuration");
    command.add_number("--seconds", options.request.seconds, between(1, kMaxSeconds),
                       "approximate duration in seconds, more if a few training steps take longer; "
                       "default: 20");
    command.add_text("--output", options.output, "FILE", "file for the measured rates (JSON)");
    command.add_text(
        "--input", options.input, "FOLDER",
        "instead measure reading and decoding of images in this folder of class folders");
    add_json_flag(command, options.json);
}

void add_validate_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"validate",
         "Compare each operation or a whole step of the model on this machine with naive loops in "
         "double. Exits with 10 if an error exceeds its tolerance.",
         {"hpcai500 validate --config configs/imagenet_goyal.yaml --output validate.json",
          "hpcai500 validate --config configs/ucmerced.yaml --quick --set "
          "training.precision=bf16"}},
        validate);
    add_config_options(command, options.config, Presence::required);
    command.add_integer("--level", options.request.level, {0, 1},
                        "0: each operation; 1: a whole step; default: 0");
    command.add_integer("--runs", options.request.runs, {1, 1000},
                        "measurements of each duration; default: 30");
    command.add_flag("--quick", options.request.quick, "use a smaller batch");
    command.add_text("--output", options.output, "FILE", "file for the results (JSON)");
    add_json_flag(command, options.json);
}

void add_doctor_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"doctor",
         "Check a launch before a run: launcher, M x P_degree, devices, data, binding, output.",
         {"mpirun -np 4 hpcai500 doctor --config configs/quickstart.yaml",
          "mpirun -np 16 hpcai500 doctor --config configs/imagenet_nvidia.yaml --output "
          "/scratch/first_run --golden"}},
        doctor);
    add_config_options(command, options.config);
    command.add_text(
        "--output", options.output, "DIR",
        "result directory of the planned run; default: run.output, else a new one in results");
    command.add_flag("--golden", options.golden,
                     "train the same 20 steps on every rank and compare results bit by bit");
}

}  // namespace hpcai::cli
