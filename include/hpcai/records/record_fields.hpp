// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

/// Defines the keys and the equality of the struct `Record`. The arguments are its members in the
/// order in which the file stores them. The name of a member is its key.
#define HPCAI_RECORD(Record, ...)                                 \
    static constexpr std::string_view record_keys = #__VA_ARGS__; \
    constexpr auto record_values() {                              \
        return std::tie(__VA_ARGS__);                             \
    }                                                             \
    constexpr auto record_values() const {                        \
        return std::tie(__VA_ARGS__);                             \
    }                                                             \
    bool operator==(const Record&) const = default

/// The building blocks of records.
namespace hpcai {

/// A number, or the reason why there is none. `reason` is empty if there is a value.
struct Quantity {
    std::optional<double> value;
    std::string reason;
    bool operator==(const Quantity&) const = default;
};

/// A number that is stored with a decimal point (1.0) even in records with has_whole_numbers.
struct Fraction {
    double value = 0;
    constexpr operator double() const { return value; }
    bool operator==(const Fraction&) const = default;
};

/// The text of a JSON object in a record, with sorted keys and indented by two spaces.
struct JsonObject {
    std::string text = "{}\n";
    bool operator==(const JsonObject&) const = default;
};

inline Quantity no_value(std::string reason) {
    return {std::nullopt, std::move(reason)};
}

/// Returns `value`, or `reason` if there is none.
inline Quantity value_or_reason(std::optional<double> value, const std::string& reason) {
    return value ? Quantity{value, ""} : no_value(reason);
}

/// One row of the table that `words_of` returns for an enumeration.
template <typename Enumeration>
struct Word {
    Enumeration value;
    std::string_view word;
};

/// Returns the word for `value` in stored records and in tables.
template <typename Enumeration>
requires requires(Enumeration value) {
    words_of(value);
}
constexpr std::string_view word_of(Enumeration value) {
    for (const auto& row : words_of(value)) {
        if (row.value == value) return row.word;
    }
    return "";
}

/// Calls `visit(key, member)` for each member of a record that HPCAI_RECORD names, in that order.
template <typename Record, typename Visit>
requires requires(Record& record) {
    record.record_values();
}
void for_each_field(Record& record, Visit&& visit) {
    std::string_view keys = record.record_keys;
    const auto next_key = [&keys] {
        const std::string_view key = keys.substr(0, keys.find(','));
        keys.remove_prefix(std::min(key.size() + 2, keys.size()));
        return std::string(key);
    };
    std::apply([&](auto&... members) { (visit(next_key(), members), ...); },
               record.record_values());
}

}  // namespace hpcai
