// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>

#include <hpcai/config/writer.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    std::string name;
    bool markdown = false;
};

ExitCode explain(const Options& options, std::ostream& out) {
    out << (options.markdown ? config::markdown() : config::explain(options.name));
    return ExitCode::ok;
}

}  // namespace

void add_config_explain_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(parent, {"explain",
                                             "Explain keys: meaning, unit, default, legal values.",
                                             {"hpcai500 config explain training.batch_size",
                                              "hpcai500 config explain bagging"}});
    CLI::Option& name =
        add_text(command, "NAME", options->name, "", "a section or section.key; default: all");
    command.add_flag("--markdown", options->markdown, "print all keys as docs/CONFIG.md has them")
        ->excludes(&name);
    set_action(command, context, [options, &context] { return explain(*options, context.out); });
}

}  // namespace hpcai::cli
