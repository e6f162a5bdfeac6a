// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/config/reader.hpp>

namespace hpcai::cli {

NumberRange above_zero() {
    return {"above 0", [](double value) { return std::isfinite(value) && value > 0; }};
}

NumberRange below_one() {
    return {"from 0 to below 1", [](double value) { return value >= 0 && value < 1; }};
}

NumberRange between(double minimum, double maximum) {
    return {fmt::format("from {} to {}", minimum, maximum),
            [=](double value) { return value >= minimum && value <= maximum; }};
}

void add_config_options(Command command, ConfigSource& source, Presence config) {
    add_config_options(command, source.path, source.overrides, config);
}

void add_config_options(Command command, std::string& path, std::vector<std::string>& overrides,
                        Presence config) {
    command.add_text("--config", path, "FILE", "YAML configuration; see configs/", config);
    command.add_texts("--set", overrides, "SECTION.KEY=VALUE", "change one key; may be repeated");
}

config::Config load(const ConfigSource& source) {
    if (source.path.empty()) return config::parse("", "defaults", source.overrides);
    return config::parse(config::read_file(source.path), source.path, source.overrides);
}

void add_json_flag(Command command, bool& json) {
    command.add_flag("--json", json, "print JSON only");
}

std::string json_text(const nlohmann::ordered_json& document) {
    return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

std::string in_quotes(const std::string& text) {
    return "'" + printable(text) + "'";
}

}  // namespace hpcai::cli
