// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <hpcai/config/key.hpp>

namespace hpcai::config {

inline constexpr double kMaxInt = std::numeric_limits<int>::max();

constexpr Bounds between(double minimum, double maximum) {
    return {minimum, maximum, true, true};
}
constexpr Bounds above_up_to(double minimum, double maximum) {
    return {minimum, maximum, false, true};
}
constexpr Bounds from_below(double minimum, double maximum) {
    return {minimum, maximum, true, false};
}

/// What a row of the key table says besides name, type and place.
struct Facts {
    std::string meaning = {};
    std::string unit = {};
    Bounds bounds = {};
};

template <typename Enum>
struct Choices {
    std::vector<std::pair<Enum, std::string>> present;
};

template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

/// Makes the keys of one section: each binds a name to a member of that section's struct.
template <typename SectionConfig>
class SectionBuilder {
public:
    SectionBuilder(std::string name, SectionConfig Config::*section)
        : name_(std::move(name)), section_(section) {}

    Key text(const std::string& name, std::string SectionConfig::*member, Facts facts) const {
        return plain<std::string>(make(name, KeyType::text, std::move(facts)), member);
    }

    /// An optional boolean may be `auto`.
    template <typename T>
    Key boolean(const std::string& name, T SectionConfig::*member, Facts facts) const {
        static_assert(std::is_same_v<T, bool> || std::is_same_v<T, std::optional<bool>>);
        return scalar<bool>(make(name, KeyType::boolean, std::move(facts)), member);
    }

    /// An optional number may be `auto`.
    template <typename T>
    Key number(const std::string& name, T SectionConfig::*member, Facts facts) const {
        static_assert(std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>);
        return scalar<double>(make(name, KeyType::number, std::move(facts)), member);
    }

    Key numbers(const std::string& name, std::vector<double> SectionConfig::*member,
                Facts facts) const {
        return plain<std::vector<double>>(make(name, KeyType::number_list, std::move(facts)),
                                          member);
    }

    Key integers(const std::string& name, std::vector<int> SectionConfig::*member,
                 Facts facts) const {
        return plain<std::vector<int>>(make(name, KeyType::integer_list, std::move(facts)), member);
    }

    Key texts(const std::string& name, std::vector<std::string> SectionConfig::*member,
              Facts facts) const {
        return plain<std::vector<std::string>>(make(name, KeyType::text_list, std::move(facts)),
                                               member);
    }

    /// An optional integer may be `auto`.
    template <typename T>
    Key integer(const std::string& name, T SectionConfig::*member, Facts facts) const {
        return scalar<std::int64_t>(make(name, KeyType::integer, std::move(facts)), member);
    }

    template <typename Enum>
    Key choice(const std::string& name, Enum SectionConfig::*member, const Choices<Enum>& choices,
               Facts facts) const {
        Key key = make(name, KeyType::choice, std::move(facts));
        for (const auto& [value, choice_name] : choices.present) key.choices.push_back(choice_name);
        key.get = [section = section_, member, table = choices.present](const Config& config) {
            for (const auto& [value, choice_name] : table) {
                if (value == config.*section.*member) return Value(choice_name);
            }
            return Value(std::string());
        };
        key.set = [section = section_, member, table = choices.present](Config& config,
                                                                        const Value& given) {
            for (const auto& [value, choice_name] : table) {
                if (choice_name == std::get<std::string>(given)) config.*section.*member = value;
            }
        };
        return key;
    }

private:
    Key make(const std::string& name, KeyType type, Facts facts) const {
        Key key;
        key.section = name_;
        key.name = name;
        key.type = type;
        key.meaning = std::move(facts.meaning);
        key.unit = std::move(facts.unit);
        key.bounds = facts.bounds;
        return key;
    }

    /// A member of type T or of an optional one, whose value is held as a Held.
    template <typename Held, typename T>
    Key scalar(Key key, T SectionConfig::*member) const {
        key.may_be_auto = IsOptional<T>::value;
        key.get = [section = section_, member](const Config& config) -> Value {
            const T& value = config.*section.*member;
            if constexpr (IsOptional<T>::value) {
                return value ? Value(Held{*value}) : Value(Automatic{});
            } else {
                return static_cast<Held>(value);
            }
        };
        key.set = [section = section_, member](Config& config, const Value& value) {
            T& target = config.*section.*member;
            if constexpr (IsOptional<T>::value) {
                const auto* given = std::get_if<Held>(&value);
                target = given ? T(static_cast<typename T::value_type>(*given)) : std::nullopt;
            } else {
                target = static_cast<T>(std::get<Held>(value));
            }
        };
        return key;
    }

    template <typename T>
    Key plain(Key key, T SectionConfig::*member) const {
        key.get = [section = section_, member](const Config& config) -> Value {
            return config.*section.*member;
        };
        key.set = [section = section_, member](Config& config, const Value& value) {
            config.*section.*member = std::get<T>(value);
        };
        return key;
    }

    std::string name_;
    SectionConfig Config::*section_;
};

/// The rows of the table, one function per file of rows.
std::vector<Key> run_keys();
std::vector<Key> submission_keys();
std::vector<Key> workload_keys();
std::vector<Key> detector_keys();
std::vector<Key> bagging_keys();
std::vector<Key> parallel_keys();
std::vector<Key> data_keys();
std::vector<Key> training_keys();
std::vector<Key> communication_keys();
std::vector<Key> device_keys();

}  // namespace hpcai::config
