// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include <algorithm>
#include <optional>
#include <ostream>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/text.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/config/machine.hpp>
#include <hpcai/config/nearest.hpp>

namespace hpcai::cli {
namespace {

std::optional<double> parse_in_range(const std::string& text, const NumberRange& range) {
    const std::optional<double> value = parse_number<double>(text);
    return value && range.contains(*value) ? value : std::nullopt;
}

/// The help pages of CLI11, with "..." only after options that take several values at once.
class HelpFormatter final : public CLI::Formatter {
    std::string make_option_opts(const CLI::Option* option) const override {
        std::string text = CLI::Formatter::make_option_opts(option);
        const std::size_t dots = text.find(" ...");
        if (!option->get_allow_extra_args() && dots != text.npos) text.erase(dots, 4);
        return text;
    }
};

/// Returns "a, b or c".
std::string alternatives(const std::vector<std::string>& names) {
    return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

bool is_program(const CLI::App& command) {
    return command.get_parent() == nullptr;
}

/// Returns "data check": the command's name after its parents' names, without the program's name.
std::string full_name(const CLI::App& command) {
    const CLI::App* parent = command.get_parent();
    if (parent == nullptr || is_program(*parent)) return command.get_name();
    return full_name(*parent) + " " + command.get_name();
}

/// Returns "data check: ", or an empty string for the program itself, whose name main() prints.
std::string prefix(const CLI::App& command) {
    return is_program(command) ? "" : full_name(command) + ": ";
}

std::string help_hint(const CLI::App& command) {
    const std::string name = is_program(command) ? "" : " " + full_name(command);
    return fmt::format("see `hpcai500{} --help`", name);
}

/// Returns the names of a command's options. The program also has the default command's options.
std::vector<std::string> option_names(const CLI::App& command, const CLI::App& default_command) {
    std::vector<const CLI::Option*> options = command.get_options();
    if (is_program(command)) {
        const auto others = default_command.get_options();
        options.insert(options.end(), others.begin(), others.end());
    }
    std::vector<std::string> names;
    for (const CLI::Option* option : options)
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    return names;
}

std::vector<std::string> subcommand_names(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::App* child : command.get_subcommands([](const CLI::App*) { return true; }))
        names.push_back(child->get_name());
    return names;
}

/// Returns the last command on the command line.
const CLI::App& deepest_command(const CLI::App& program) {
    const CLI::App* command = &program;
    while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
    return *command;
}

/// Returns "section.key=" for each key, and for the key in `word` "section.key=value" with each
/// value that has a name.
std::vector<std::string> setting_names(const std::string& word) {
    std::vector<std::string> names;
    for (const config::Key& key : config::keys()) {
        const std::string begin = key.full_name() + "=";
        std::vector<std::string> values{""};
        if (word.starts_with(begin)) {
            values = key.choices;
            if (key.may_be_auto) values.emplace_back("auto");
            if (key.type == config::KeyType::boolean) values = {"true", "false"};
        }
        for (const std::string& value : values) names.push_back(begin + value);
    }
    return names;
}

std::vector<std::string> sections_and_keys() {
    std::vector<std::string> names;
    for (const config::Key& key : config::keys()) {
        const std::string name = key.full_name(), section = name.substr(0, name.find('.'));
        if (std::ranges::count(names, section) == 0) names.push_back(section);
        names.push_back(name);
    }
    return names;
}

/// Returns a hint for an argument that seems to be a folder, configuration file or key without its
/// option --data, --config or --set, or the value of a key that --set names.
std::string option_hint(const CLI::App& command, const std::vector<std::string>& unknown) {
    const std::string& argument = unknown.front();
    const auto has = [&](const char* option) { return command.get_option_no_throw(option); };
    const bool is_file = argument.ends_with(".yaml") || argument.ends_with(".yml");
    const auto hint = [](const char* option, const std::string& value) {
        return fmt::format("; did you mean `{} {}`?", option, printable(shell_quote(value)));
    };
    if (has("--config") && is_file && !argument.starts_with('-')) return hint("--config", argument);
    if (const CLI::Option* data = has("--data");
        data != nullptr && data->get_required() && !argument.starts_with('-'))
        return hint("--data", argument);
    if (const CLI::Option* set = has("--set"); set != nullptr && !argument.starts_with('-'))
        for (const std::string& setting : set->results())
            if (setting.find('=') == setting.npos) return hint("--set", setting + "=" + argument);
    const std::size_t equals = std::min(argument.find('='), argument.size());
    std::string name = argument.substr(0, equals);
    name.erase(0, name.find_first_not_of('-'));
    std::ranges::replace(name, '-', '_');
    const std::string key = config::full_name_of(name);
    if (!has("--set") || key.empty()) return "";
    const std::string value = unknown.size() > 1 ? "=" + unknown[1] : "=...";
    const std::string setting = key + (equals < argument.size() ? argument.substr(equals) : value);
    return hint("--set", setting);
}

[[noreturn]] void reject_unknown(const CLI::App& command, const std::vector<std::string>& unknown,
                                 const CLI::App& default_command) {
    const std::string& argument = unknown.front();
    const bool is_option = argument.size() > 1 && argument.front() == '-';
    const std::string name = is_option ? argument.substr(0, argument.find('=')) : argument;
    const std::vector<std::string> commands = subcommand_names(command);
    const char* kind = is_option ? "option" : commands.empty() ? "argument" : "command";
    std::string hint = option_hint(is_program(command) ? default_command : command, unknown);
    if (hint.empty())
        hint = config::did_you_mean(name,
                                    is_option ? option_names(command, default_command) : commands);
    if (hint.empty() && !is_option && !commands.empty()) {
        hint = fmt::format("; expected one of {}", fmt::join(commands, ", "));
    }
    if (hint.empty()) hint = "; " + help_hint(command);
    throw Error(ExitCode::usage,
                fmt::format("{}unknown {} {}{}", prefix(command), kind, in_quotes(name), hint));
}

/// Throws for the first unknown argument and for a missing subcommand.
void require_known_arguments(const CLI::App& program, const CLI::App& default_command) {
    const CLI::App& last = deepest_command(program);
    for (const CLI::App* command = &program;; command = command->get_subcommands().back()) {
        const std::vector<std::string> unknown = command->remaining();
        if (!unknown.empty()) reject_unknown(*command, unknown, default_command);
        if (command == &last) break;
    }
    const std::vector<std::string> commands = subcommand_names(last);
    require(commands.empty(), ExitCode::usage, "{}expected a command: one of {}; {}", prefix(last),
            fmt::join(commands, ", "), help_hint(last));
}

Error usage_error(const CLI::App& program, const CLI::ParseError& error) {
    const CLI::App& command = deepest_command(program);
    return {ExitCode::usage,
            fmt::format("{}{}; {}", prefix(command), printable(error.what()), help_hint(command))};
}

/// Returns whether `argument` is an option of `command`, but not of the program. It may have
/// "=value".
bool is_option_of(const CLI::App& command, const std::string& argument) {
    const std::string name = argument.substr(0, argument.find('='));
    return name.starts_with("--") && command.get_parent()->get_option_no_throw(name) == nullptr &&
           command.get_option_no_throw(name) != nullptr;
}

/// Prepares arguments for CLI11: "help plan" becomes "plan --help". Adds the default command before
/// its options, and splits "--name=", because CLI11 would take the next argument as its value.
std::vector<std::string> prepare_arguments(const std::vector<std::string>& arguments,
                                           const CLI::App& default_command) {
    std::vector<std::string> result;
    if (arguments.empty()) return result;
    if (arguments.front() == "help" || arguments.front() == "version") {
        result.assign(arguments.begin() + 1, arguments.end());
        result.push_back("--" + arguments.front());
        return result;
    }
    if (is_option_of(default_command, arguments.front()))
        result.push_back(default_command.get_name());
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

/// Breaks the lines of a help page, in which descriptions begin in column 30.
std::string wrap_help(const std::string& help) {
    std::string text;
    for (const std::string& line : CLI::detail::split(help, '\n'))
        text += wrap(line, line.starts_with(' ') ? 30 : 0) + '\n';
    return text;
}

}  // namespace

Command Command::add_command(const CommandText& text) const {
    app_->require_subcommand(0, 1);
    CLI::App& command = *app_->add_subcommand(text.name, text.summary);
    std::string footer = "Examples:";
    for (const std::string& example : text.examples)
        footer += "\n" + wrap("  " + example, 6, " \\\n");
    command.footer(footer);
    return {command, *chosen_};
}

void Command::add_flag(const std::string& name, bool& target, const std::string& meaning) const {
    app_->add_flag(name, target, meaning);
}

void Command::add_parsed(const std::string& name,
                         const std::function<void(const std::string&)>& read,
                         const std::string& type, const std::string& meaning,
                         Presence presence) const {
    app_->add_option_function<std::string>(name, read, meaning)
        ->type_name(type)
        ->required(presence == Presence::required);
}

void Command::add_texts(const std::string& name, std::vector<std::string>& target,
                        const std::string& type, const std::string& meaning,
                        Presence presence) const {
    app_->add_option(name, target, meaning)
        ->type_name(type)
        ->each(
            [command = *this, name](const std::string& text) { command.require_text(name, text); })
        ->allow_extra_args(!name.starts_with('-'))
        ->required(presence == Presence::required);
}

void Command::add_files(const std::string& name, std::vector<std::string>& target,
                        const std::string& meaning) const {
    add_texts(name, target, "FILE", meaning);
    app_->get_option(name)->allow_extra_args();
}

void Command::require_text(const std::string& name, const std::string& text) const {
    require(!text.empty(), ExitCode::usage, "{}: {}: expected a non-empty string", full_name(*app_),
            name);
}

std::int64_t Command::parse_integer(const std::string& name, const std::string& text,
                                    IntegerRange range) const {
    const std::optional<std::int64_t> value = hpcai::parse_number<std::int64_t>(text);
    require(value && *value >= range.minimum && *value <= range.maximum, ExitCode::usage,
            "{}: {}: expected an integer from {} to {}, got {}", full_name(*app_), name,
            range.minimum, range.maximum, in_quotes(text));
    return *value;
}

double Command::parse_number(const std::string& name, const std::string& text,
                             const NumberRange& range) const {
    const std::optional<double> value = parse_in_range(text, range);
    require(value.has_value(), ExitCode::usage, "{}: {}: expected a number {}, got {}",
            full_name(*app_), name, range.text, in_quotes(text));
    return *value;
}

void Command::add_numbers(const std::string& name, std::vector<double>& target,
                          const NumberRange& range, const std::string& meaning) const {
    const auto validate = [range](const std::string& text) {
        return parse_in_range(text, range)
                   ? std::string()
                   : fmt::format("expected a number {}, got {}", range.text, in_quotes(text));
    };
    app_->add_option(name, target, meaning)->type_name("X")->check(CLI::Validator(validate, ""));
}

std::size_t Command::index_of(const std::string& name, const std::string& text,
                              const std::vector<std::string>& names) const {
    const auto found = std::ranges::find(names, text);
    require(found != names.end(), ExitCode::usage, "{}: {}: expected {}, got {}{}",
            full_name(*app_), name, alternatives(names), in_quotes(text),
            config::did_you_mean(text, names));
    return static_cast<std::size_t>(found - names.begin());
}

void Command::exclude(const std::string& option, const std::string& other) const {
    app_->get_option(option)->excludes(app_->get_option(other));
}

void Command::set_action(Action action) const {
    app_->callback([chosen = chosen_, action = std::move(action)] { *chosen = action; });
}

CommandLine::CommandLine(const ProgramText& text)
    : app_(std::make_unique<CLI::App>(text.summary, text.name)),
      default_command_(text.default_command) {
    app_->formatter(std::make_shared<HelpFormatter>());
    app_->footer(text.footer);
    app_->set_help_flag("-h,--help", "print this help");
    app_->set_version_flag("-V,--version", text.version, "print the version and the build");
}

CommandLine::~CommandLine() = default;

Command CommandLine::program() {
    return {*app_, chosen_};
}

Action CommandLine::parse(const std::vector<std::string>& arguments, std::ostream& out) {
    const CLI::App& default_command = *app_->get_subcommand(default_command_);
    std::vector<std::string> reversed = prepare_arguments(arguments, default_command);
    std::reverse(reversed.begin(), reversed.end());  // CLI11 expects the reverse order
    try {
        app_->parse(reversed);
    } catch (const CLI::CallForHelp&) {
        out << wrap_help(app_->help());
        return nullptr;
    } catch (const CLI::CallForVersion& version) {
        out << version.what() << '\n';
        return nullptr;
    } catch (const CLI::ParseError& error) {
        require_known_arguments(*app_, default_command);
        throw usage_error(*app_, error);
    }
    require_known_arguments(*app_, default_command);
    return chosen_;
}

std::vector<std::string> CommandLine::completions(const std::vector<std::string>& words) const {
    const CLI::App& default_command = *app_->get_subcommand(default_command_);
    const CLI::App* command = app_.get();
    const CLI::Option* option = nullptr;  // expects the next word as its value
    bool has_argument = false;            // whether there is a positional argument
    const std::string word = words.empty() ? "" : words.back();
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        const bool is_value = std::exchange(option, nullptr) != nullptr;
        const std::vector<std::string> names = subcommand_names(*command);
        if (is_value) continue;
        if (std::ranges::count(names, words[i]) > 0) {
            command = command->get_subcommand(words[i]);
            continue;
        }
        has_argument |= !words[i].starts_with('-');
        if (!words[i].starts_with("--")) continue;
        option = command->get_option_no_throw(words[i]);
        if (option == nullptr && is_program(*command))
            option = default_command.get_option_no_throw(words[i]);
        if (option != nullptr && option->get_items_expected_max() == 0) option = nullptr;
    }
    const auto positionals =
        command->get_options([](const CLI::Option* one) { return one->get_positional(); });
    if (option == nullptr && !word.starts_with('-') && !has_argument && !positionals.empty())
        option = positionals.front();
    std::vector<std::string> names;
    if (option == nullptr) {
        names = word.starts_with('-') ? option_names(*command, default_command)
                                      : subcommand_names(*command);
    } else if (option->check_lname("set")) {
        names = setting_names(word);
    } else if (option->check_lname("machine")) {
        for (const auto& machine : config::shipped_machines()) names.push_back(machine.first);
    } else if (command->check_name("explain")) {
        names = sections_and_keys();
    } else if (const std::string type = option->get_type_name(); type.find('|') != type.npos) {
        names = CLI::detail::split(type, '|');
    }
    std::erase_if(names, [&](const std::string& name) { return !name.starts_with(word); });
    return names;
}

}  // namespace hpcai::cli
