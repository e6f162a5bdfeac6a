// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

namespace hpcai::cli {

void add_data_command(CLI::App& parent, Context& context) {
    CLI::App& command = add_command(
        parent, {"data",
                 "Make, check, measure, convert and show data sets.",
                 {"hpcai500 data generate photographs --output quickstart-data --classes 8",
                  "hpcai500 data check quickstart-data/train"}});
    command.require_subcommand(0, 1);
    add_data_generate_command(command, context);
    add_data_check_command(command, context);
    add_data_stats_command(command, context);
    add_data_index_command(command, context);
    add_data_transcode_command(command, context);
    add_data_show_command(command, context);
}

}  // namespace hpcai::cli
