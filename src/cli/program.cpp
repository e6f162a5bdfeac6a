// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ostream>

#include <hpcai/base/shell.hpp>
#include <hpcai/cli/program.hpp>
#include <hpcai/training/faults.hpp>

#include "commands.hpp"
#include "misuse.hpp"

namespace hpcai::cli {
namespace {

constexpr const char* kSummary =
    "HPC AI500 V3.0: trains an ensemble by bagging, M base models of P_degree ranks each, and "
    "scores it.";
constexpr const char* kFooter =
    "Options without a command belong to `run`.\n\n"
    "Examples:\n"
    "  mpirun -np 4 hpcai500 run --config configs/quickstart.yaml\n"
    "  hpcai500 plan --config configs/imagenet_goyal.yaml --ranks 256 --ranks-per-node 8";

void add_commands(CLI::App& program, Context& context) {
    add_run_command(program, context);
    add_resume_command(program, context);
    add_score_command(program, context);
    add_plan_command(program, context);
    add_flops_command(program, context);
    add_bench_command(program, context);
    add_roofline_command(program, context);
    add_export_command(program, context);
    add_evaluate_command(program, context);
    add_verify_command(program, context);
    add_compare_command(program, context);
    add_rank_command(program, context);
    add_report_command(program, context);
    add_energy_command(program, context);
    add_doctor_command(program, context);
    add_status_command(program, context);
    add_sbatch_command(program, context);
    add_data_command(program, context);
    add_config_command(program, context);
}

std::string command_line_of(const std::vector<std::string>& arguments) {
    std::string line = "hpcai500";
    for (const std::string& argument : arguments) line += " " + shell_word(argument);
    return line;
}

/// What the library is to see: a bare `hpcai500 --config F` is a run, and `--config=` gives an
/// empty text, where the library would take the next argument.
std::vector<std::string> completed(const CLI::App& program,
                                   const std::vector<std::string>& arguments) {
    std::vector<std::string> result;
    if (!arguments.empty() && is_option_of_default_command(program, arguments.front())) {
        result.emplace_back(kDefaultCommand);
    }
    for (const std::string& argument : arguments) {
        if (argument.starts_with("--") && argument.ends_with('=')) {
            result.push_back(argument.substr(0, argument.size() - 1));
            result.emplace_back();
        } else {
            result.push_back(argument);
        }
    }
    return result;
}

/// True when the command has an action to do; false when help or version were asked for, and
/// printed.
bool parse(CLI::App& program, std::vector<std::string> arguments, std::ostream& out) {
    std::reverse(arguments.begin(), arguments.end());  // as the library wants them
    try {
        program.parse(arguments);
    } catch (const CLI::CallForHelp&) {
        out << program.help();
        return false;
    } catch (const CLI::CallForVersion& version) {
        out << version.what() << '\n';
        return false;
    } catch (const CLI::ParseError& error) {
        require_known_arguments(program);
        throw misuse(program, error);
    }
    require_known_arguments(program);
    return true;
}

}  // namespace

ExitCode run_program(const std::vector<std::string>& arguments, std::ostream& out) {
    CLI::App program(kSummary, "hpcai500");
    program.footer(kFooter);
    program.set_help_flag("-h,--help", "print this help");
    const std::string version = std::string("hpcai500 " HPCAI500_VERSION) +
                                (training::faults_are_built_in() ? " with faults" : "");
    program.set_version_flag("--version", version, "print the version");
    program.require_subcommand(0, 1);
    Context context{out, command_line_of(arguments), {}};
    add_commands(program, context);

    ExitCode code = ExitCode::ok;
    if (parse(program, completed(program, arguments), out)) code = context.action();
    out.flush();
    require(out.good(), ExitCode::usage, "standard output: cannot be written");
    return code;
}

}  // namespace hpcai::cli
