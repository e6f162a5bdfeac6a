// SPDX-License-Identifier: Apache-2.0
#include <ostream>

#include <hpcai/config/writer.hpp>

#include "commands.hpp"

namespace hpcai::cli {

void add_config_schema_command(CLI::App& parent, Context& context) {
    CLI::App& command = add_command(
        parent, {"schema",
                 "Print the JSON schema (draft 2020-12) of a configuration file.",
                 {"hpcai500 config schema", "hpcai500 config schema > hpcai500.schema.json"}});
    set_action(command, context, [&context] {
        context.out << config::json_schema();
        return ExitCode::ok;
    });
}

}  // namespace hpcai::cli
