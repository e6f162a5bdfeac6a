// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <hpcai/benchmark/run.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    ConfigSource config;
    std::string output;
};

}  // namespace

void add_run_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent,
        {"run",
         "Run the benchmark as one rank of it: train, vote, score, write the result directory.",
         {"mpirun -np 4 hpcai500 run --config configs/quickstart.yaml",
          "mpirun -np 2 hpcai500 run --config configs/ucmerced.yaml --set training.precision=fp32 "
          "--output results/ucmerced"}});
    add_config_options(command, options->config, Presence::required);
    add_text(command, "--output", options->output, "DIR",
             "result directory, new or empty; default: run.output, else "
             "results/<run.name>-<UTC time>");
    set_action(command, context, [options, &context] {
        const ConfigSource& config = options->config;
        return benchmark::run_benchmark(
            {config.path, config.overrides, options->output, context.command_line}, context.out);
    });
}

}  // namespace hpcai::cli
