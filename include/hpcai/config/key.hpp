// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include <hpcai/config/config.hpp>

namespace hpcai::config {

enum class KeyType { text, boolean, integer, number, choice, integer_list, number_list, text_list };

/// A value of any key; Automatic is written `auto`, a choice is held as its name.
using Automatic = std::monostate;
using Value = std::variant<Automatic, bool, std::int64_t, double, std::string, std::vector<int>,
                           std::vector<double>, std::vector<std::string>>;

/// Legal interval of a number, or of each element of a list.
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
    std::string meaning;  // one sentence
    std::string unit;     // empty: none
    Bounds bounds;
    bool may_be_auto = false;
    std::vector<std::string> choices;
    bool is_file_name = false;  // text: must be fit to be part of a file's name
    std::function<Value(const Config&)> get;
    std::function<void(Config&, const Value&)> set;  // the value must be legal for this key

    std::string full_name() const { return section + "." + name; }
};

struct Section {
    std::string name;
    std::string meaning;  // one sentence
};

}  // namespace hpcai::config
