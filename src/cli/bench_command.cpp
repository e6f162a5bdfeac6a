// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <ostream>
#include <vector>

#include <hpcai/benchmark/bench.hpp>
#include <hpcai/report/json.hpp>
#include <hpcai/storage/file.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    ConfigSource config;
    std::int64_t steps = 10;
    std::string roofline;
    std::string svg;
    bool json = false;
};

std::optional<RooflineRecord> read_roofline(const Options& options) {
    constexpr std::size_t kLargestFile = std::size_t{16} << 20;
    require(options.roofline.empty() == options.svg.empty(), ExitCode::usage,
            "bench: --roofline and --svg: expected both or neither, got one");
    if (options.roofline.empty()) return std::nullopt;
    const std::vector<std::byte> bytes = storage::read_file_bytes(options.roofline, kLargestFile);
    return report::roofline_from_json(storage::text_of(bytes), options.roofline);
}

ExitCode bench(const Options& options, std::ostream& out) {
    const std::optional<RooflineRecord> roofline = read_roofline(options);
    const benchmark::BenchReport report = benchmark::run_bench(load(options.config), options.steps);
    if (roofline) {
        storage::write_file_durably(options.svg, benchmark::bench_svg(report, *roofline));
    }
    out << (options.json ? benchmark::bench_json(report) : benchmark::bench_text(report));
    return ExitCode::ok;
}

}  // namespace

void add_bench_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent,
        {"bench",
         "Measure the training step of one rank, which takes the whole batch at once whatever "
         "`parallel` says, on random data in memory, and each of its operations alone.",
         {"hpcai500 bench --config configs/imagenet_goyal.yaml --set training.batch_size=32",
          "hpcai500 bench --config configs/ucmerced.yaml --set device.threads=2 --steps 20 "
          "--json"}});
    add_config_options(command, options->config, Presence::required);
    add_integer(
        command, "--steps", [options](std::int64_t steps) { options->steps = steps; },
        {1, 1'000'000}, "steps to time (10)");
    add_text(command, "--roofline", options->roofline, "FILE",
             "what `hpcai500 roofline --output` measured, for --svg");
    add_text(command, "--svg", options->svg, "FILE",
             "where to draw the speed of each operation under the ceilings");
    add_json_flag(command, options->json);
    set_action(command, context, [options, &context] { return bench(*options, context.out); });
}

}  // namespace hpcai::cli
