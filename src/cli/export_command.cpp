// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>

#include <hpcai/base/text.hpp>
#include <hpcai/benchmark/export_weights.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    std::string directory;
    int group = 0;
    std::string output;
};

ExitCode export_group(const Options& options, std::ostream& out) {
    benchmark::export_weights(options.directory, options.group, options.output);
    out << "wrote " << printable(options.output) << '\n';
    return ExitCode::ok;
}

}  // namespace

void add_export_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent,
        {"export",
         "Write the trained weights of one group as safetensors under torchvision's names.",
         {"hpcai500 export results/quickstart --group 0 --output member-0.safetensors",
          "hpcai500 export results/ucmerced --group 1 --output /data/member-1.safetensors"}});
    add_text(command, "DIR", options->directory, "", "result directory of a run").required();
    add_integer(
        command, "--group",
        [options](std::int64_t group) { options->group = static_cast<int>(group); },
        {0, 1'000'000'000}, "base model, from 0")
        .required();
    add_text(command, "--output", options->output, "FILE", "file to write").required();
    set_action(command, context,
               [options, &context] { return export_group(*options, context.out); });
}

}  // namespace hpcai::cli
