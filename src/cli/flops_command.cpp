// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>

#include <hpcai/prediction/flops_table.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    ConfigSource config;
    bool json = false;
};

ExitCode flops(const Options& options, std::ostream& out) {
    const config::Config config = load(options.config);
    out << (options.json ? prediction::flops_json(config) : prediction::flops_table(config));
    return ExitCode::ok;
}

}  // namespace

void add_flops_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent,
        {"flops",
         "Count the model's FLOPs by layer and pass in three ledgers, parameters and activations.",
         {"hpcai500 flops --config configs/imagenet_goyal.yaml",
          "hpcai500 flops --config configs/imagenet_goyal.yaml --set "
          "workload.model=resnet50_v1 --json"}});
    add_config_options(command, options->config, Presence::required);
    add_json_flag(command, options->json);
    set_action(command, context, [options, &context] { return flops(*options, context.out); });
}

}  // namespace hpcai::cli
