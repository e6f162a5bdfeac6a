// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>
#include <utility>

#include <hpcai/base/text.hpp>
#include <hpcai/config/reader.hpp>

namespace hpcai::cli {
namespace {

/// The number that is all of `text`, in decimal whatever the locale.
template <typename Number>
std::optional<Number> number_in(const std::string& text) {
    Number value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || rest != end) return std::nullopt;
    return value;
}

}  // namespace

CLI::App& add_command(CLI::App& parent, const CommandText& text) {
    CLI::App& command = *parent.add_subcommand(text.name, text.summary);
    std::string footer = "Examples:";
    for (const std::string& example : text.examples) footer += "\n  " + example;
    command.footer(footer);
    return command;
}

void set_action(CLI::App& command, Context& context, std::function<ExitCode()> action) {
    command.callback([&context, action = std::move(action)] { context.action = action; });
}

void add_config_options(CLI::App& command, ConfigSource& source, Presence config) {
    add_text(command, "--config", source.path, "FILE", "YAML configuration; see configs/")
        .required(config == Presence::required);
    command.add_option("--set", source.overrides, "change one key; may be repeated")
        ->type_name("SECTION.KEY=VALUE")
        ->allow_extra_args(false);
}

config::Config load(const ConfigSource& source) {
    if (source.path.empty()) return config::parse("", "defaults", source.overrides);
    return config::parse(config::read_file(source.path), source.path, source.overrides);
}

void add_json_flag(CLI::App& command, bool& json) {
    command.add_flag("--json", json, "print JSON only");
}

CLI::Option& add_text(CLI::App& command, const std::string& name, std::string& target,
                      const std::string& type, const std::string& meaning) {
    const auto store = [&command, &target, name](const std::string& text) {
        require(!text.empty(), ExitCode::usage, "{}: {}: expected a text, got none",
                full_name(command), name);
        target = text;
    };
    return *command.add_option_function<std::string>(name, store, meaning)->type_name(type);
}

CLI::Option& add_integer(CLI::App& command, const std::string& name,
                         std::function<void(std::int64_t)> store, IntegerRange range,
                         const std::string& meaning) {
    const auto read = [&command, name, range, store = std::move(store)](const std::string& text) {
        const std::optional<std::int64_t> value = number_in<std::int64_t>(text);
        require(value && *value >= range.minimum && *value <= range.maximum, ExitCode::usage,
                "{}: {}: expected an integer from {} to {}, got {}", full_name(command), name,
                range.minimum, range.maximum, in_quotes(text));
        store(*value);
    };
    return *command.add_option_function<std::string>(name, read, meaning)->type_name("N");
}

CLI::Option& add_number(CLI::App& command, const std::string& name,
                        std::function<void(double)> store, const std::string& meaning) {
    const auto read = [&command, name, store = std::move(store)](const std::string& text) {
        const std::optional<double> value = number_in<double>(text);
        require(value && std::isfinite(*value) && *value > 0, ExitCode::usage,
                "{}: {}: expected a number above 0, got {}", full_name(command), name,
                in_quotes(text));
        store(*value);
    };
    return *command.add_option_function<std::string>(name, read, meaning)->type_name("X");
}

CLI::Option& add_number_within(CLI::App& command, const std::string& name,
                               std::function<void(double)> store, NumberRange range,
                               const std::string& meaning) {
    const auto read = [&command, name, range, store = std::move(store)](const std::string& text) {
        const std::optional<double> value = number_in<double>(text);
        require(value && *value >= range.minimum && *value <= range.maximum, ExitCode::usage,
                "{}: {}: expected a number from {} to {}, got {}", full_name(command), name,
                range.minimum, range.maximum, in_quotes(text));
        store(*value);
    };
    return *command.add_option_function<std::string>(name, read, meaning)->type_name("X");
}

std::string json_text(const nlohmann::ordered_json& document) {
    return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string in_quotes(const std::string& text) {
    return "'" + printable(text) + "'";
}

std::string full_name(const CLI::App& command) {
    const CLI::App* parent = command.get_parent();
    if (parent == nullptr || parent->get_parent() == nullptr) return command.get_name();
    return full_name(*parent) + " " + command.get_name();
}

}  // namespace hpcai::cli
