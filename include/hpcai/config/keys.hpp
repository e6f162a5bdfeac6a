// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <hpcai/config/key.hpp>

/// The one table of configuration keys. The reader, the writer, `config explain`, the JSON schema
/// and docs/CONFIG.md are all derived from it.
namespace hpcai::config {

/// Sections, and keys grouped by section, in the order in which they are printed.
const std::vector<Section>& sections();
const std::vector<Key>& keys();

/// Null where there is none of this name.
const Section* find_section(std::string_view name);
const Key* find_key(std::string_view section, std::string_view name);

/// What a key accepts, as the object of "expected ...": "an integer, at least 1", "one of a, b".
std::string legal_values(const Key& key);

/// `value` as it is written in YAML; texts are in double quotes.
std::string yaml_value(const Key& key, const Value& value);

/// The value in `config` of `full_name` ("training.precision") without quotes: a choice's name, a
/// number's shortest decimal form. Throws Error(internal) for a key that is not in the table.
std::string value_text(const Config& config, std::string_view full_name);

}  // namespace hpcai::config
