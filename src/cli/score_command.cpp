// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <hpcai/benchmark/score.hpp>

#include "commands.hpp"

namespace hpcai::cli {

void add_score_command(CLI::App& parent, Context& context) {
    auto request = std::make_shared<benchmark::ScoreRequest>();
    CLI::App& command = add_command(
        parent,
        {"score",
         "Let the groups of a run vote that died before it could: without MPI, by their "
         "files.",
         {"hpcai500 score results/quickstart", "hpcai500 score /scratch/run-17 --allow-partial"}});
    add_text(command, "DIR", request->directory, "", "result directory of the run").required();
    command.add_flag("--allow-partial", request->allow_partial,
                     "without the groups that have not finished, for a PARTIAL result");
    set_action(command, context,
               [request, &context] { return benchmark::score_run(*request, context.out); });
}

}  // namespace hpcai::cli
