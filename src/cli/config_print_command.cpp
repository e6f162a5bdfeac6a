// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>

#include <hpcai/config/writer.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    ConfigSource config;
    bool json = false;
};

ExitCode print(const Options& options, std::ostream& out) {
    const config::Config config = load(options.config);
    out << (options.json ? config::to_json(config) : config::to_yaml(config));
    return ExitCode::ok;
}

}  // namespace

void add_config_print_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent,
        {"print",
         "Print every key with its value in force; without --config, the defaults.",
         {"hpcai500 config print --config configs/quickstart.yaml --set training.batch_size=64",
          "hpcai500 config print --config configs/imagenet_goyal.yaml --json"}});
    add_config_options(command, options->config, Presence::optional);
    add_json_flag(command, options->json);
    set_action(command, context, [options, &context] { return print(*options, context.out); });
}

}  // namespace hpcai::cli
