// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <hpcai/base/error.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/config/reader.hpp>

namespace CLI {
class App;
}

/// Declarations of commands and their options. Only command_line.cpp includes CLI11, the parser.
namespace hpcai::cli {

/// What an action receives from the program.
struct Context {
    std::ostream& out;         // results
    std::string command_line;  // quoted for a shell
};

using Action = std::function<ExitCode(const Context&)>;

struct CommandText {
    std::string name;
    std::string summary;  // one sentence
    std::vector<std::string> examples;
};

enum class Presence : std::uint8_t { required, optional };

struct IntegerRange {
    std::int64_t minimum;
    std::int64_t maximum;
};

struct NumberRange {
    std::string text;  // in messages: "expected a number <text>"
    std::function<bool(double)> contains;
};

/// Finite numbers above 0.
NumberRange above_zero();
/// Numbers from 0 to below 1.
NumberRange below_one();
/// Numbers from `minimum` to `maximum`, both included.
NumberRange between(double minimum, double maximum);

/// The legal names of an option's values, each paired with the value.
template <typename Value>
using Choices = std::vector<std::pair<std::string, Value>>;

/// A handle that declares the options of a command. It is valid while its CommandLine exists.
///
/// A `name` is "--name" for an option and "NAME" for a positional argument; `type` stands for the
/// value in the help ("FILE"). A `target` is the variable that receives the value; it must exist
/// until the command line is parsed, and is unchanged if the option is absent. CommandLine::parse()
/// throws Error(usage), naming the command and the option, for an illegal value.
class Command {
public:
    /// Adds a subcommand. This command then requires one of its subcommands.
    [[nodiscard]] Command add_command(const CommandText& text) const;

    /// Adds a subcommand that runs `action` and owns the returned targets of its options. If
    /// `Options` has `config`, the sources of a configuration, errors name file and line of a key.
    template <typename Options>
    std::pair<Command, Options&> add_command(const CommandText& text,
                                             ExitCode (*action)(const Options&,
                                                                const Context&)) const {
        const auto options = std::make_shared<Options>();
        const Command command = add_command(text);
        command.set_action([options, action](const Context& context) {
            const auto work = [&] { return action(*options, context); };
            if constexpr (requires { options->config.overrides; }) {
                return config::locate_errors(options->config, work);
            } else {
                return work();
            }
        });
        return {command, *options};
    }

    /// An option without a value.
    void add_flag(const std::string& name, bool& target, const std::string& meaning) const;

    /// A string or path, which must not be empty.
    template <typename Target>
    void add_text(const std::string& name, Target& target, const std::string& type,
                  const std::string& meaning, Presence presence = Presence::optional) const {
        const auto read = [command = *this, name, &target](const std::string& text) {
            command.require_text(name, text);
            target = text;
        };
        add_parsed(name, read, type, meaning, presence);
    }

    /// A required positional argument, such as a file.
    void add_argument(const std::string& name, std::string& target,
                      const std::string& meaning) const {
        add_text(name, target, "", meaning, Presence::required);
    }

    /// A repeatable option with one string per use, or a positional list of all other arguments.
    void add_texts(const std::string& name, std::vector<std::string>& target,
                   const std::string& type, const std::string& meaning,
                   Presence presence = Presence::optional) const;

    /// An option with one or more file names, which must not be empty.
    void add_files(const std::string& name, std::vector<std::string>& target,
                   const std::string& meaning) const;

    /// A decimal integer. The target is an integer that can hold the range, or an optional of such
    /// an integer.
    template <typename Target>
    void add_integer(const std::string& name, Target& target, IntegerRange range,
                     const std::string& meaning, Presence presence = Presence::optional) const {
        using Value = typename decltype(std::optional(target))::value_type;
        const auto read = [command = *this, name, range, &target](const std::string& text) {
            target = static_cast<Value>(command.parse_integer(name, text, range));
        };
        add_parsed(name, read, "N", meaning, presence);
    }

    /// A decimal number, independent of the locale. The target is a double or an optional of one.
    template <typename Target>
    void add_number(const std::string& name, Target& target, const NumberRange& range,
                    const std::string& meaning) const {
        const auto read = [command = *this, name, range, &target](const std::string& text) {
            target = command.parse_number(name, text, range);
        };
        add_parsed(name, read, "X", meaning);
    }

    /// An option with one or more decimal numbers.
    void add_numbers(const std::string& name, std::vector<double>& target, const NumberRange& range,
                     const std::string& meaning) const;

    /// One of several names. The help has them as "a|b|c".
    template <typename Value>
    void add_choice(const std::string& name, Value& target,
                    std::type_identity_t<Choices<Value>> choices,
                    const std::string& meaning) const {
        std::vector<std::string> names;
        std::string type;
        for (const auto& choice : choices) {
            names.push_back(choice.first);
            type += (type.empty() ? "" : "|") + choice.first;
        }
        const auto read = [command = *this, name, names, choices = std::move(choices),
                           &target](const std::string& text) {
            target = choices[command.index_of(name, text, names)].second;
        };
        add_parsed(name, read, type, meaning);
    }

    /// A string that `read` stores or rejects with an Error.
    void add_parsed(const std::string& name, const std::function<void(const std::string&)>& read,
                    const std::string& type, const std::string& meaning,
                    Presence presence = Presence::optional) const;

    /// Rejects a command line that has both options.
    void exclude(const std::string& option, const std::string& other) const;

    /// Sets the action of this command.
    void set_action(Action action) const;

private:
    friend class CommandLine;

    /// `chosen` receives the action of the command that the user chose.
    Command(CLI::App& app, Action& chosen) : app_(&app), chosen_(&chosen) {}

    // Throw Error(usage) if the text of option `name` is illegal. All but the last return a value.
    std::int64_t parse_integer(const std::string& name, const std::string& text,
                               IntegerRange range) const;
    double parse_number(const std::string& name, const std::string& text,
                        const NumberRange& range) const;
    std::size_t index_of(const std::string& name, const std::string& text,
                         const std::vector<std::string>& names) const;
    void require_text(const std::string& name, const std::string& text) const;

    CLI::App* app_;
    Action* chosen_;
};

/// Adds the repeatable --config FILE and --set SECTION.KEY=VALUE.
void add_config_options(Command command, config::Sources& sources,
                        Presence config = Presence::optional);

/// Options of a command that prints a configuration or its properties.
struct ConfigOptions {
    config::Sources config;
    bool json = false;
};

/// Throws Error(usage), naming `option`, if the folder of `file` is missing or `file` is a folder.
void require_place(std::string_view option, const std::string& file);

/// As require_place(). Also throws if `file` exists and does not begin with `head`, the beginning
/// of an earlier output.
void require_replaceable(std::string_view option, const std::string& file, std::string_view head);

/// Returns `message` with `advice`, in which $1 is N, instead of "start with `mpirun -np N`".
std::string replace_launch(const std::string& message, const std::string& advice);

/// Adds --json, which sets `json`.
void add_json_flag(Command command, bool& json);

/// `document` as the JSON text that a command prints. Replaces invalid UTF-8.
std::string json_text(const nlohmann::ordered_json& document);

/// `text` in single quotes with escaped control characters.
std::string in_quotes(const std::string& text);

}  // namespace hpcai::cli
