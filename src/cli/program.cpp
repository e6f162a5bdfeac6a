// SPDX-License-Identifier: Apache-2.0
#include <ostream>

#include <poll.h>
#include <unistd.h>

#include <hpcai/base/text.hpp>
#include <hpcai/cli/program.hpp>
#include <hpcai/context/build.hpp>
#include <hpcai/training/faults.hpp>

#include "command_line.hpp"
#include "commands.hpp"

namespace hpcai::cli {
namespace {

constexpr const char* kSummary =
    "HPC AI500 V3.0: trains an ensemble of M base models with P_degree ranks each, and reports "
    "FLOPS and VFLOPS.";
constexpr const char* kFooter =
    "Options without a command belong to `run`.\n\n"
    "Examples:\n"
    "  mpirun -np 4 hpcai500 run --config configs/quickstart.yaml\n"
    "  hpcai500 plan --config configs/imagenet_goyal.yaml --nodes 32 --machine h200";

void add_commands(Command program) {
    for (const auto add_command :
         {add_run_command,    add_resume_command,   add_score_command,     add_plan_command,
          add_flops_command,  add_bench_command,    add_roofline_command,  add_validate_command,
          add_export_command, add_evaluate_command, add_verify_command,    add_compare_command,
          add_rank_command,   add_table_command,    add_report_command,    add_energy_command,
          add_doctor_command, add_status_command,   add_sbatch_command,    add_init_command,
          add_data_command,   add_config_command,   add_completion_command}) {
        add_command(program);
    }
}

std::string command_line_of(const std::vector<std::string>& arguments) {
    std::string line = "hpcai500";
    for (const std::string& argument : arguments) line += " " + shell_quote(argument);
    return line;
}

/// Returns whether the reader of standard output has closed it, as `head` does.
bool has_lost_reader() {
    pollfd output{STDOUT_FILENO, POLLOUT, 0};
    return poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace

ExitCode run_program(const std::vector<std::string>& arguments, std::ostream& out) {
    std::string version = training::program_version();
    for (const auto& [name, value] : context::describe_build()) {
        version += "\n" + wrap(fmt::format("{:<12} {}", name, value), 13);
    }
    CommandLine line({"hpcai500", kSummary, kFooter, version, "run"});
    add_commands(line.program());
    if (arguments.size() > 1 && arguments[0] == "completion" && arguments[1] == "words") {
        for (const std::string& word : line.completions({arguments.begin() + 2, arguments.end()}))
            out << word << '\n';
        return ExitCode::ok;
    }
    const Action action = line.parse(arguments, out);
    const ExitCode code = action ? action({out, command_line_of(arguments)}) : ExitCode::ok;
    out.flush();
    require(out.good() || has_lost_reader(), ExitCode::usage, "standard output: cannot be written");
    return code;
}

}  // namespace hpcai::cli
