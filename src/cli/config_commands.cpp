// SPDX-License-Identifier: Apache-2.0
#include <ostream>

#include <hpcai/config/writer.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

ExitCode print_config(const ConfigOptions& options, const Context& context) {
    const config::Config config = load(options.config);
    context.out << (options.json ? config::to_json(config) : config::to_yaml(config));
    return ExitCode::ok;
}

void add_config_print_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"print",
         "Print every key with its effective value; without --config, the defaults.",
         {"hpcai500 config print --config configs/quickstart.yaml --set training.batch_size=64",
          "hpcai500 config print --config configs/imagenet_goyal.yaml --json"}},
        print_config);
    add_config_options(command, options.config, Presence::optional);
    add_json_flag(command, options.json);
}

struct ConfigExplainOptions {
    std::string name;
    bool markdown = false;
};

ExitCode explain_config(const ConfigExplainOptions& options, const Context& context) {
    context.out << (options.markdown ? config::markdown() : config::explain(options.name));
    return ExitCode::ok;
}

void add_config_explain_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"explain",
         "Explain keys: meaning, unit, default, legal values.",
         {"hpcai500 config explain training.batch_size", "hpcai500 config explain bagging"}},
        explain_config);
    command.add_text("NAME", options.name, "", "a section or section.key; default: all");
    command.add_flag("--markdown", options.markdown, "print docs/CONFIG.md: all keys as Markdown");
    command.exclude("--markdown", "NAME");
}

void add_config_schema_command(Command parent) {
    const Command command = parent.add_command(
        {"schema",
         "Print the JSON schema (draft 2020-12) of a configuration file.",
         {"hpcai500 config schema", "hpcai500 config schema > hpcai500.schema.json"}});
    command.set_action([](const Context& context) {
        context.out << config::json_schema();
        return ExitCode::ok;
    });
}

}  // namespace

void add_config_command(Command parent) {
    const Command command =
        parent.add_command({"config",
                            "Show the configuration: effective values, meanings, schema.",
                            {"hpcai500 config print --config configs/quickstart.yaml",
                             "hpcai500 config explain training.batch_size"}});
    add_config_print_command(command);
    add_config_explain_command(command);
    add_config_schema_command(command);
}

}  // namespace hpcai::cli
