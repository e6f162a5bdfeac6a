// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <hpcai/benchmark/doctor.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    benchmark::DoctorRequest request;
    ConfigSource config;
};

}  // namespace

void add_doctor_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent, {"doctor",
                 "Check a launch before a run: launcher, eq. 5, devices, data, binding, output.",
                 {"mpirun -np 4 hpcai500 doctor --config configs/quickstart.yaml",
                  "mpirun -np 16 hpcai500 doctor --config configs/imagenet_nvidia.yaml --output "
                  "/scratch/first_run --golden"}});
    add_config_options(command, options->config, Presence::optional);
    add_text(command, "--output", options->request.output, "DIR",
             "result directory of the run to come; default: run.output, else a new one in results");
    command.add_flag("--golden", options->request.golden,
                     "take the same 20 steps on every rank and compare their bits");
    set_action(command, context, [options, &context] {
        benchmark::DoctorRequest request = options->request;
        request.config_path = options->config.path;
        request.overrides = options->config.overrides;
        request.command_line = context.command_line;
        return benchmark::run_doctor(request, context.out);
    });
}

}  // namespace hpcai::cli
