// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <hpcai/benchmark/run.hpp>

#include "commands.hpp"

namespace hpcai::cli {

void add_resume_command(CLI::App& parent, Context& context) {
    auto directory = std::make_shared<std::string>();
    CLI::App& command = add_command(
        parent, {"resume",
                 "Go on with a run that was stopped or has died, as one rank of it: "
                 "groups from their newest checkpoints, then the vote.",
                 {"mpirun -np 4 hpcai500 resume results/quickstart",
                  "mpirun -np 64 --map-by ppr:4:node hpcai500 resume /scratch/run-17"}});
    add_text(command, "DIR", *directory, "", "result directory of the run, which had as many ranks")
        .required();
    set_action(command, context, [directory, &context] {
        return benchmark::run_benchmark({{}, {}, {}, context.command_line, *directory},
                                        context.out);
    });
}

}  // namespace hpcai::cli
