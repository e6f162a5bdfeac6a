// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <hpcai/base/error.hpp>
#include <hpcai/config/config.hpp>

namespace CLI {
class App;
}

/// What all commands are made of. The library that reads the arguments is included by
/// command_line.cpp alone.
namespace hpcai::cli {

/// What an action works with.
struct Context {
    std::ostream& out;         // results
    std::string command_line;  // as typed
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
    std::string text;  // in an error: "expected a number <text>"
    std::function<bool(double)> contains;
};

/// Finite numbers above 0.
NumberRange above_zero();
/// Numbers from 0 to below 1.
NumberRange below_one();
/// Numbers from `minimum` to `maximum`, both included.
NumberRange between(double minimum, double maximum);

/// Legal names of a value, each with what it stands for.
template <typename Value>
using Choices = std::vector<std::pair<std::string, Value>>;

/// A command while its options are declared: a handle, valid as long as the CommandLine that made
/// it.
///
/// A `name` is "--name" for an option and "NAME" for an argument without dashes; `type` stands for
/// the value in the help ("FILE"). A target keeps its value where the option is absent. It must
/// live until the command line is read, as what the command's action owns does. An illegal value
/// ends the reading with Error(usage), which names the command and the option.
class Command {
public:
    /// Adds a command below this one, which thereby does nothing by itself.
    [[nodiscard]] Command add_command(const CommandText& text) const;

    /// Adds a command that does `action` with the targets of its options, which it owns.
    template <typename Options>
    std::pair<Command, Options&> add_command(const CommandText& text,
                                             ExitCode (*action)(const Options&,
                                                                const Context&)) const {
        const auto options = std::make_shared<Options>();
        const Command command = add_command(text);
        command.set_action(
            [options, action](const Context& context) { return action(*options, context); });
        return {command, *options};
    }

    /// A switch without a value.
    void add_flag(const std::string& name, bool& target, const std::string& meaning) const;

    /// A text that must not be empty.
    void add_text(const std::string& name, std::string& target, const std::string& type,
                  const std::string& meaning, Presence presence = Presence::optional) const;

    /// An argument without dashes that must be given, such as a file.
    void add_argument(const std::string& name, std::string& target,
                      const std::string& meaning) const {
        add_text(name, target, "", meaning, Presence::required);
    }

    /// An option that may be repeated, one text each time, or all arguments that are left.
    void add_texts(const std::string& name, std::vector<std::string>& target,
                   const std::string& type, const std::string& meaning,
                   Presence presence = Presence::optional) const;

    /// An option with one file or more, whose names must not be empty.
    void add_files(const std::string& name, std::vector<std::string>& target,
                   const std::string& meaning) const;

    /// An integer in decimal digits. The target is an integer that holds the whole range, or an
    /// optional of one.
    template <typename Target>
    void add_integer(const std::string& name, Target& target, IntegerRange range,
                     const std::string& meaning, Presence presence = Presence::optional) const {
        const auto store = [&target](std::int64_t value) {
            target = static_cast<typename ValueOf<Target>::Type>(value);
        };
        add_integer_option(name, store, range, meaning, presence);
    }

    /// A decimal number, whatever the locale. The target is a double or an optional of one.
    template <typename Target>
    void add_number(const std::string& name, Target& target, const NumberRange& range,
                    const std::string& meaning) const {
        add_number_option(
            name, [&target](double value) { target = value; }, range, meaning);
    }

    /// An option with one decimal number or more.
    void add_numbers(const std::string& name, std::vector<double>& target, const NumberRange& range,
                     const std::string& meaning) const;

    /// One of several names.
    template <typename Value>
    void add_choice(const std::string& name, Value& target,
                    std::type_identity_t<Choices<Value>> choices, const std::string& type,
                    const std::string& meaning) const {
        std::vector<std::string> names;
        for (const auto& choice : choices) names.push_back(choice.first);
        const auto store = [&target, choices = std::move(choices)](std::size_t index) {
            target = choices[index].second;
        };
        add_choice_option(name, names, store, type, meaning);
    }

    /// A text that `read` stores, or refuses with an Error.
    void add_parsed(const std::string& name, const std::function<void(const std::string&)>& read,
                    const std::string& type, const std::string& meaning,
                    Presence presence = Presence::optional) const;

    /// Refuses a command line with both options.
    void exclude(const std::string& option, const std::string& other) const;

    /// Makes `action` what the program does when this command is given.
    void set_action(Action action) const;

private:
    friend class CommandLine;

    /// `chosen` gets the action of the command that is found in the command line.
    Command(CLI::App& app, Action& chosen) : app_(&app), chosen_(&chosen) {}

    template <typename Target>
    struct ValueOf {
        using Type = Target;
    };
    template <typename Value>
    struct ValueOf<std::optional<Value>> {
        using Type = Value;
    };

    void add_integer_option(const std::string& name, std::function<void(std::int64_t)> store,
                            IntegerRange range, const std::string& meaning,
                            Presence presence) const;
    void add_number_option(const std::string& name, std::function<void(double)> store,
                           const NumberRange& range, const std::string& meaning) const;
    void add_choice_option(const std::string& name, const std::vector<std::string>& names,
                           std::function<void(std::size_t)> store, const std::string& type,
                           const std::string& meaning) const;

    CLI::App* app_;
    Action* chosen_;
};

/// A configuration file and changes of its keys.
struct ConfigSource {
    std::string path;
    std::vector<std::string> overrides;
};

/// --config F and --set section.key=value, which may be repeated.
void add_config_options(Command command, ConfigSource& source, Presence config);
void add_config_options(Command command, std::string& path, std::vector<std::string>& overrides,
                        Presence config = Presence::optional);

/// Options of a command that prints something of a configuration.
struct ConfigOptions {
    ConfigSource config;
    bool json = false;
};

/// The configuration with the changes; that of the defaults where no file is given. Throws as
/// config::read_file and config::parse do.
config::Config load(const ConfigSource& source);

/// --json, which sets `json`.
void add_json_flag(Command command, bool& json);

/// `document` as a command prints it. Bytes that are no UTF-8 become the replacement character.
std::string json_text(const nlohmann::ordered_json& document);

/// `text` in single quotes, its control characters escaped.
std::string in_quotes(const std::string& text);

}  // namespace hpcai::cli
