// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

namespace hpcai::cli {

void add_data_generate_command(CLI::App& parent, Context& context) {
    CLI::App& command =
        add_command(parent, {"generate",
                             "Make synthetic data in the formats of the real ones.",
                             {"hpcai500 data generate photographs --output quickstart-data",
                              "hpcai500 data generate climate --output train.h5 --samples 64"}});
    command.require_subcommand(0, 1);
    add_data_generate_photographs_command(command, context);
    add_data_generate_climate_command(command, context);
}

}  // namespace hpcai::cli
