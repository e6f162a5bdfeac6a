// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <hpcai/config/keys.hpp>

/// The rows of the key table. Each row binds a name to a member of one section's struct.
namespace hpcai::config {

inline constexpr double kMaxInt = std::numeric_limits<int>::max();
inline constexpr std::uint64_t kMaxSeed = 9007199254740991;  // 2^53 - 1, exact as a double

/// The legal range of a number, or of each number of a list, and the unit.
struct Range {
    Bounds bounds;
    const char* unit = "";
};

/// These functions return [minimum, maximum], (minimum, maximum] and [minimum, maximum).
constexpr Range between(double minimum, double maximum, const char* unit = "") {
    return {{minimum, maximum, true, true}, unit};
}
constexpr Range above_up_to(double minimum, double maximum, const char* unit = "") {
    return {{minimum, maximum, false, true}, unit};
}
constexpr Range from_below(double minimum, double maximum, const char* unit = "") {
    return {{minimum, maximum, true, false}, unit};
}

/// The type of a key that is bound to a member of type T; std::optional adds `auto`.
template <typename T>
inline constexpr KeyType kKeyType = KeyType::integer;
template <>
inline constexpr KeyType kKeyType<bool> = KeyType::boolean;
template <>
inline constexpr KeyType kKeyType<double> = KeyType::number;
template <>
inline constexpr KeyType kKeyType<std::string> = KeyType::text;
template <>
inline constexpr KeyType kKeyType<std::vector<int>> = KeyType::integer_list;
template <>
inline constexpr KeyType kKeyType<std::vector<double>> = KeyType::number_list;
template <>
inline constexpr KeyType kKeyType<std::vector<std::string>> = KeyType::text_list;
template <typename T>
inline constexpr KeyType kKeyType<std::optional<T>> = kKeyType<T>;

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <typename T>
Value to_value(const T& member) {
    if constexpr (kIsOptional<T>) {
        return member ? to_value(*member) : Automatic{};
    } else if constexpr (kKeyType<T> == KeyType::integer) {
        return static_cast<std::int64_t>(member);
    } else {
        return member;
    }
}

template <typename T>
void assign(T& member, const Value& value) {
    if constexpr (kIsOptional<T>) {
        member.reset();
        if (!std::holds_alternative<Automatic>(value)) assign(member.emplace(), value);
    } else if constexpr (kKeyType<T> == KeyType::integer) {
        member = static_cast<T>(std::get<std::int64_t>(value));
    } else {
        member = std::get<T>(value);
    }
}

/// Makes the keys of one section: the member kSection of Config, called `section` in YAML.
template <auto kSection>
struct SectionKeys {
    using Struct = std::remove_reference_t<decltype(std::declval<Config&>().*kSection)>;

    const char* section;

    template <typename T>
    Key operator()(const char* name, T Struct::*member, const std::string& meaning) const {
        return (*this)(name, member, Range{}, meaning);
    }

    template <typename T>
    Key operator()(const char* name, T Struct::*member, const Range& range,
                   const std::string& meaning) const {
        return {
            .section = section,
            .name = name,
            .type = kKeyType<T>,
            .meaning = meaning,
            .unit = range.unit,
            .bounds = range.bounds,
            .may_be_auto = kIsOptional<T>,
            .get = [member](const Config& config) { return to_value(config.*kSection.*member); },
            .set = [member](Config& config,
                            const Value& value) { assign(config.*kSection.*member, value); }};
    }

    /// A key whose values are the enumerators of Enum; `choices` has their names in YAML.
    template <typename Enum>
    Key operator()(const char* name, Enum Struct::*member,
                   const std::vector<std::pair<Enum, std::string>>& choices,
                   const std::string& meaning) const {
        using Choice = std::pair<Enum, std::string>;
        Key key{.section = section, .name = name, .type = KeyType::choice, .meaning = meaning};
        for (const Choice& choice : choices) key.choices.push_back(choice.second);
        key.get = [member, table = choices](const Config& config) -> Value {
            return std::ranges::find(table, config.*kSection.*member, &Choice::first)->second;
        };
        key.set = [member, table = choices](Config& config, const Value& value) {
            const auto& word = std::get<std::string>(value);
            config.*kSection.*member = std::ranges::find(table, word, &Choice::second)->first;
        };
        return key;
    }
};

std::vector<Key> run_keys();
std::vector<Key> run_lifecycle_keys();
std::vector<Key> submission_keys();
std::vector<Key> workload_keys();
std::vector<Key> detector_keys();
std::vector<Key> search_keys();
std::vector<Key> bagging_keys();
std::vector<Key> parallel_keys();
std::vector<Key> data_source_keys();
std::vector<Key> data_preparation_keys();
std::vector<Key> data_feeding_keys();
std::vector<Key> batch_and_rate_keys();
std::vector<Key> optimizer_keys();
std::vector<Key> engine_keys();
std::vector<Key> communication_keys();
std::vector<Key> device_keys();

}  // namespace hpcai::config
