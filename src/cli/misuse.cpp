// SPDX-License-Identifier: Apache-2.0
#include "misuse.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/text.hpp>
#include <hpcai/config/nearest.hpp>

#include "command.hpp"

namespace hpcai::cli {
namespace {

bool is_program(const CLI::App& command) {
    return command.get_parent() == nullptr;
}

/// "data check: ", nothing for the program itself, which main() names.
std::string prefix(const CLI::App& command) {
    return is_program(command) ? "" : full_name(command) + ": ";
}

std::string see_help(const CLI::App& command) {
    const std::string name = is_program(command) ? "" : " " + full_name(command);
    return fmt::format("see `hpcai500{} --help`", name);
}

void append_option_names(const CLI::App& command, std::vector<std::string>& names) {
    for (const CLI::Option* option : command.get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
}

std::vector<std::string> option_names(const CLI::App& command) {
    std::vector<std::string> names;
    append_option_names(command, names);
    if (is_program(command)) append_option_names(*command.get_subcommand(kDefaultCommand), names);
    return names;
}

std::vector<std::string> subcommand_names(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::App* one : command.get_subcommands([](const CLI::App*) { return true; })) {
        names.push_back(one->get_name());
    }
    return names;
}

[[noreturn]] void refuse(const CLI::App& command, const std::string& argument) {
    const bool is_option = argument.size() > 1 && argument.front() == '-';
    const std::string name = is_option ? argument.substr(0, argument.find('=')) : argument;
    const std::vector<std::string> commands = subcommand_names(command);
    const char* kind = is_option ? "option" : commands.empty() ? "argument" : "command";
    std::string hint = config::did_you_mean(name, is_option ? option_names(command) : commands);
    if (hint.empty() && !is_option && !commands.empty()) {
        hint = fmt::format("; expected one of {}", fmt::join(commands, ", "));
    }
    if (hint.empty()) hint = "; " + see_help(command);
    throw Error(ExitCode::usage,
                fmt::format("{}unknown {} {}{}", prefix(command), kind, in_quotes(name), hint));
}

}  // namespace

bool is_option_of_default_command(const CLI::App& program, const std::string& argument) {
    const std::string name = argument.substr(0, argument.find('='));
    return name.starts_with("--") && program.get_option_no_throw(name) == nullptr &&
           program.get_subcommand(kDefaultCommand)->get_option_no_throw(name) != nullptr;
}

const CLI::App& deepest_command(const CLI::App& program) {
    const CLI::App* command = &program;
    while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
    return *command;
}

void require_known_arguments(const CLI::App& program) {
    const CLI::App* command = &program;
    while (true) {
        const std::vector<std::string> unknown = command->remaining();
        if (!unknown.empty()) refuse(*command, unknown.front());
        if (command->get_subcommands().empty()) break;
        command = command->get_subcommands().back();
    }
    const std::vector<std::string> commands = subcommand_names(*command);
    require(commands.empty(), ExitCode::usage, "{}expected a command: one of {}; {}",
            prefix(*command), fmt::join(commands, ", "), see_help(*command));
}

Error misuse(const CLI::App& program, const CLI::ParseError& error) {
    const CLI::App& command = deepest_command(program);
    return {ExitCode::usage,
            fmt::format("{}{}; {}", prefix(command), printable(error.what()), see_help(command))};
}

}  // namespace hpcai::cli
