// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <hpcai/base/error.hpp>
#include <hpcai/config/config.hpp>

/// What all commands are made of.
namespace hpcai::cli {

/// What the commands share while the arguments are read.
struct Context {
    std::ostream& out;                 // results
    std::string command_line;          // as typed
    std::function<ExitCode()> action;  // of the command found in it
};

struct CommandText {
    std::string name;
    std::string summary;  // one sentence
    std::vector<std::string> examples;
};

/// Adds a command whose help has `text`. References stay valid as long as `parent`.
CLI::App& add_command(CLI::App& parent, const CommandText& text);

/// Makes `action` what the program does when `command` is given.
void set_action(CLI::App& command, Context& context, std::function<ExitCode()> action);

/// A configuration file and changes of its keys.
struct ConfigSource {
    std::string path;
    std::vector<std::string> overrides;
};

enum class Presence { required, optional };

/// --config F and --set section.key=value, which may be repeated.
void add_config_options(CLI::App& command, ConfigSource& source, Presence config);

/// The configuration; the defaults with the changes where no file is given. Throws as
/// config::read_file and config::parse do.
config::Config load(const ConfigSource& source);

void add_json_flag(CLI::App& command, bool& json);

/// An option with a text that must not be empty; `type` stands for it in the help ("FILE").
CLI::Option& add_text(CLI::App& command, const std::string& name, std::string& target,
                      const std::string& type, const std::string& meaning);

struct IntegerRange {
    std::int64_t minimum;
    std::int64_t maximum;
};

/// An option with an integer in decimal digits, refused with the range when it is out of it.
CLI::Option& add_integer(CLI::App& command, const std::string& name,
                         std::function<void(std::int64_t)> store, IntegerRange range,
                         const std::string& meaning);

/// An option with a finite decimal number above 0.
CLI::Option& add_number(CLI::App& command, const std::string& name,
                        std::function<void(double)> store, const std::string& meaning);

struct NumberRange {
    double minimum;
    double maximum;
};

/// An option with a decimal number, refused with the range when it is out of it.
CLI::Option& add_number_within(CLI::App& command, const std::string& name,
                               std::function<void(double)> store, NumberRange range,
                               const std::string& meaning);

/// `document` as a command prints it. Bytes that are no UTF-8 become the replacement character.
std::string json_text(const nlohmann::ordered_json& document);

/// `text` in single quotes, its control characters escaped.
std::string in_quotes(const std::string& text);

/// "data check": the command's name with those above it, without the program's.
std::string full_name(const CLI::App& command);

}  // namespace hpcai::cli
