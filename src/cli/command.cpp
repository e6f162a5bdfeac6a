// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>

#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>

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

void add_config_options(Command command, config::Sources& sources, Presence config) {
    command.add_texts("--config", sources.files, "FILE",
                      "YAML configuration; repeatable: later files win", config);
    command.add_texts("--set", sources.overrides, "SECTION.KEY=VALUE",
                      "change one key; repeatable");
}

void require_place(std::string_view option, const std::string& file) {
    std::error_code error;
    const auto folder = std::filesystem::path(file).parent_path();
    require(folder.empty() || std::filesystem::is_directory(folder, error), ExitCode::usage,
            "{}: expected a file in an existing folder, got {}", option, in_quotes(file));
    require(!std::filesystem::is_directory(file, error), ExitCode::usage,
            "{}: expected a file, got the folder {}", option, in_quotes(file));
}

void require_replaceable(std::string_view option, const std::string& file, std::string_view head) {
    require_place(option, file);
    std::error_code error;
    if (!std::filesystem::exists(std::filesystem::symlink_status(file, error))) return;
    std::string earlier(head.size(), '\0');
    if (std::filesystem::is_regular_file(file, error))  // reading a pipe could wait forever
        std::ifstream(file, std::ios::binary)
            .read(earlier.data(), static_cast<std::streamsize>(earlier.size()));
    require(earlier == head, ExitCode::usage,
            "{}: expected a new file or an earlier output of this command, got {}", option,
            in_quotes(file));
}

std::string replace_launch(const std::string& message, const std::string& advice) {
    static const std::regex kLaunch("start with `mpirun -np ([0-9]+)`");
    return std::regex_replace(message, kLaunch, advice);
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
