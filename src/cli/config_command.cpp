// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

namespace hpcai::cli {

void add_config_command(CLI::App& parent, Context& context) {
    CLI::App& command =
        add_command(parent, {"config",
                             "Show the configuration: effective values, meanings, schema.",
                             {"hpcai500 config print --config configs/quickstart.yaml",
                              "hpcai500 config explain training.batch_size"}});
    command.require_subcommand(0, 1);
    add_config_print_command(command, context);
    add_config_explain_command(command, context);
    add_config_schema_command(command, context);
}

}  // namespace hpcai::cli
