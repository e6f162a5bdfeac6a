// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>

#include <hpcai/benchmark/bench.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    ConfigSource config;
    std::int64_t steps = 10;
    bool json = false;
};

ExitCode bench(const Options& options, std::ostream& out) {
    const benchmark::BenchReport report = benchmark::run_bench(load(options.config), options.steps);
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
    add_json_flag(command, options->json);
    set_action(command, context, [options, &context] { return bench(*options, context.out); });
}

}  // namespace hpcai::cli
