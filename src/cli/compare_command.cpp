// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>

#include <hpcai/verification/compare.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    std::string first;
    std::string second;
    bool json = false;
};

ExitCode compare(const Options& options, std::ostream& out) {
    const auto comparison = verification::compare(options.first, options.second);
    out << (options.json ? verification::to_json(comparison) : verification::to_text(comparison));
    return ExitCode::ok;
}

}  // namespace

void add_compare_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent, {"compare",
                 "Two results side by side: settings that differ, and which metrics do by "
                 "statistics.",
                 {"hpcai500 compare results/fp32 results/bf16",
                  "hpcai500 compare results/before results/after --json"}});
    add_text(command, "A", options->first, "", "result directory of the first run").required();
    add_text(command, "B", options->second, "", "result directory of the second run").required();
    add_json_flag(command, options->json);
    set_action(command, context, [options, &context] { return compare(*options, context.out); });
}

}  // namespace hpcai::cli
