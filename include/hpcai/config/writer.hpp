// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/config/config.hpp>

namespace hpcai::config {

/// Returns every key with its value, as YAML that parses to the same Config.
std::string to_yaml(const Config& config);

/// Returns all keys and values as a JSON object of sections. Names are sorted; `auto` is "auto".
std::string to_json(const Config& config);

/// Returns meaning, unit, default and legal values of one key ("training.batch_size"), of the keys
/// of a section ("training"), or of all keys (""). Throws Error(usage) for any other name, with the
/// nearest legal name or all of them.
std::string explain(const std::string& name);

/// Returns the text of docs/CONFIG.md: all keys as Markdown.
std::string markdown();

/// Returns the JSON schema (draft 2020-12) of a configuration file.
std::string json_schema();

}  // namespace hpcai::config
