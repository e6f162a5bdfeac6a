// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <hpcai/config/config.hpp>

/// The table of configuration keys. The reader, the writer, `config explain`, the JSON schema and
/// docs/CONFIG.md are derived from it.
namespace hpcai::config {

enum class KeyType { text, boolean, integer, number, choice, integer_list, number_list, text_list };

/// A value of any key. Automatic is the value `auto` of a key with may_be_auto. A value of a choice
/// is its name, even the name "auto".
using Automatic = std::monostate;
using Value = std::variant<Automatic, bool, std::int64_t, double, std::string, std::vector<int>,
                           std::vector<double>, std::vector<std::string>>;

/// Legal range of a number, or of each element of a list.
struct Bounds {
    double minimum = -std::numeric_limits<double>::infinity();
    double maximum = std::numeric_limits<double>::infinity();
    bool minimum_is_legal = true;
    bool maximum_is_legal = true;

    bool contain(double value) const noexcept;
};

struct Key {
    std::string section;
    std::string name;
    KeyType type = KeyType::text;
    std::string meaning;  // for users
    std::string unit;     // empty: none
    Bounds bounds;
    bool may_be_auto = false;
    std::vector<std::string> choices;
    bool is_file_name = false;  // whether the value becomes part of a file's name
    std::function<Value(const Config&)> get;
    std::function<void(Config&, const Value&)> set;  // the value must be legal for this key

    std::string full_name() const { return section + "." + name; }
};

struct Section {
    std::string name;
    std::string meaning;  // for users
};

/// Sections, and keys grouped by section, in the order of printing.
const std::vector<Section>& sections();
const std::vector<Key>& keys();

/// Returns null if the section has no key of this name.
const Key* find_key(std::string_view section, std::string_view name);

/// Returns the full name of the first key with this name, full name or synonym (resolve_synonym):
/// "workload.epochs" for "epochs". Returns an empty string if there is none.
std::string full_name_of(std::string_view name);

/// Describes the legal values for messages: "an integer from 1 to 9", "one of a, b".
std::string legal_values(const Key& key);

/// Returns `value` in YAML; text is in double quotes, the name of a choice is not.
std::string yaml_value(const Key& key, const Value& value);

/// Returns yaml_value() of the key `full_name` ("training.precision"), but without quotes if the
/// key has type text. Throws Error(internal) for an unknown key.
std::string value_text(const Config& config, std::string_view full_name);

}  // namespace hpcai::config
