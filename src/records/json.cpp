// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <hpcai/records/flight_record.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/records/plan_record.hpp>
#include <hpcai/records/progress_record.hpp>
#include <hpcai/records/repetitions_record.hpp>
#include <hpcai/records/trial_record.hpp>

#include "record_checks.hpp"

namespace hpcai::records {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kNotFinite = "not a finite number";

std::string reason_of(const Quantity& quantity) {
    if (quantity.value) return std::isfinite(*quantity.value) ? "" : kNotFinite;
    return quantity.reason.empty() ? "not measured" : quantity.reason;
}

/// Returns `number` as an integer if it is whole and a double represents it exactly.
ordered_json to_integer(const ordered_json& number) {
    constexpr double kMaxExact = 9007199254740992.0;  // 2^53
    if (!number.is_number_float()) return number;
    const double value = number.get<double>();
    if (value != std::floor(value) || std::abs(value) > kMaxExact) return number;
    return static_cast<std::int64_t>(value);
}

class Writer {
public:
    /// With `has_whole_numbers`, writes 1 instead of 1.0.
    explicit Writer(bool has_whole_numbers) : has_whole_numbers_(has_whole_numbers) {}

    template <typename T>
    void operator()(const std::string& key, const T& value) {
        object_[key] = json_of(value);
    }

    void operator()(const std::string& key, double value) { (*this)(key, Quantity{value, {}}); }

    void operator()(const std::string& key, const Fraction& fraction) {
        object_[key] = fraction.value;
    }

    void operator()(const std::string& key, const Quantity& quantity) {
        const ordered_json number = number_or_null(quantity);
        object_[key] = has_whole_numbers_ ? to_integer(number) : number;
        if (object_[key].is_null()) object_[key + "_reason"] = reason_of(quantity);
    }

    void operator()(const std::string& key, const std::vector<Quantity>& quantities) {
        ordered_json values = ordered_json::array();
        ordered_json reasons = ordered_json::array();
        bool is_complete = true;
        for (const Quantity& quantity : quantities) {
            values.push_back(number_or_null(quantity));
            reasons.push_back(reason_of(quantity));
            is_complete = is_complete && reason_of(quantity).empty();
        }
        object_[key] = std::move(values);
        if (!is_complete) object_[key + "_reason"] = std::move(reasons);
    }

    void operator()(const std::string& key, const std::vector<double>& values) {
        std::vector<Quantity> quantities;
        for (const double value : values) quantities.push_back({value, {}});
        (*this)(key, quantities);
    }

    /// Writes nothing if there is no value.
    template <typename T>
    void operator()(const std::string& key, const std::optional<T>& value) {
        if (value) (*this)(key, *value);
    }

    /// Writes the name of the alternative under `key`, then the alternative's own keys.
    template <typename... Alternatives>
    void operator()(const std::string& key, const std::variant<Alternatives...>& value) {
        std::visit(
            [&](const auto& alternative) {
                object_[key] = alternative.name;
                for_each_field(alternative, *this);
            },
            value);
    }

    ordered_json take() { return std::move(object_); }

private:
    template <typename T>
    ordered_json json_of(const T& value) const {
        if constexpr (requires { words_of(value); }) {
            return word_of(value);
        } else if constexpr (std::is_same_v<T, ExitCode>) {
            return static_cast<int>(value);
        } else if constexpr (std::is_same_v<T, JsonObject>) {
            return json::parse(value.text);
        } else if constexpr (requires { value.record_values(); }) {
            Writer inner(has_whole_numbers_);
            for_each_field(value, inner);
            return inner.take();
        } else {
            return value;
        }
    }

    template <typename T>
    ordered_json json_of(const std::vector<T>& values) const {
        ordered_json list = ordered_json::array();
        for (const T& value : values) list.push_back(json_of(value));
        return list;
    }

    bool has_whole_numbers_;
    ordered_json object_ = ordered_json::object();
};

template <std::integral T>
void read(const json& in, const Place& place, T& value) {
    constexpr std::int64_t lowest = std::is_unsigned_v<T> ? 0 : std::numeric_limits<T>::min();
    constexpr auto highest = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
    const bool fits = in.is_number_unsigned()
                          ? in.get<std::uint64_t>() <= highest
                          : in.is_number_integer() && in.get<std::int64_t>() >= lowest;
    if (!fits) place.fail(fmt::format("an integer from {} to {}", lowest, highest), in);
    value = in.get<T>();
}

void read(const json& in, const Place& place, bool& value) {
    if (!in.is_boolean()) place.fail("true or false", in);
    value = in.get<bool>();
}

void read(const json& in, const Place& place, std::string& value) {
    if (!in.is_string()) place.fail("a text", in);
    value = in.get<std::string>();
}

void read(const json& in, const Place& place, JsonObject& value) {
    if (!in.is_object()) place.fail("an object", in);
    value.text = in.dump(2) + "\n";
}

void read(const json& in, const Place& place, double& value) {
    if (!in.is_number() && !in.is_null()) place.fail("a number or null", in);
    value = in.is_null() ? std::numeric_limits<double>::quiet_NaN() : in.get<double>();
}

template <typename Enumeration>
requires requires(Enumeration value) {
    words_of(value);
}
void read(const json& in, const Place& place, Enumeration& value) {
    const auto& rows = words_of(value);
    const auto row =
        std::ranges::find_if(rows, [&](const auto& candidate) { return in == candidate.word; });
    if (row == rows.end()) {
        std::vector<std::string_view> words;
        for (const auto& candidate : rows) words.push_back(candidate.word);
        place.fail(fmt::format("one of {}", fmt::join(words, ", ")), in);
    }
    value = row->value;
}

void read(const json& in, const Place& place, ExitCode& value) {
    int number = -1;
    read(in, place, number);
    if (number < static_cast<int>(ExitCode::ok) || number > static_cast<int>(ExitCode::mismatch)) {
        place.fail("an exit code from 0 to 10", in);
    }
    value = static_cast<ExitCode>(number);
}

void read(const json& in, const Place& place, std::map<std::string, std::string>& values) {
    if (!in.is_object()) place.fail("an object", in);
    for (const auto& [key, value] : in.items()) read(value, place.key(key), values[key]);
}

class Reader {
public:
    Reader(const json& object, const Place& place) : object_(object), place_(place) {
        if (!object.is_object()) place.fail("an object", object);
    }

    template <typename T>
    void operator()(const std::string& key, T& value) const {
        read_value(member(key), place_.key(key), value);
    }

    void operator()(const std::string& key, Quantity& quantity) const {
        const json& in = member(key);
        read_quantity(in, place_.key(key), quantity);
        if (in.is_null()) (*this)(key + "_reason", quantity.reason);
    }

    void operator()(const std::string& key, std::vector<Quantity>& quantities) const {
        const json& in = member(key);
        if (!in.is_array()) place_.key(key).fail("a list", in);
        quantities.resize(in.size());
        std::vector<std::string> reasons(in.size());
        const bool is_complete =
            std::ranges::none_of(in, [](const json& element) { return element.is_null(); });
        if (!is_complete) (*this)(key + "_reason", reasons);
        if (reasons.size() != in.size()) {
            place_.key(key + "_reason").fail(fmt::format("{} texts", in.size()), reasons);
        }
        for (std::size_t index = 0; index < in.size(); ++index) {
            read_quantity(in[index], place_.key(key).index(index), quantities[index]);
            quantities[index].reason = reasons[index];
        }
    }

    template <typename T>
    void operator()(const std::string& key, std::optional<T>& value) const {
        if (object_.contains(key)) (*this)(key, value.emplace());
    }

    template <typename... Alternatives>
    void operator()(const std::string& key, std::variant<Alternatives...>& value) const {
        const json& name = member(key);
        const auto read_if_named = [&]<typename Alternative>(Alternative alternative) {
            if (name != Alternative::name) return false;
            for_each_field(alternative, *this);
            value = std::move(alternative);
            return true;
        };
        if ((read_if_named(Alternatives{}) || ...)) return;
        const std::vector<std::string_view> names{Alternatives::name...};
        place_.key(key).fail(fmt::format("one of {}", fmt::join(names, ", ")), name);
    }

private:
    static void read_quantity(const json& in, const Place& place, Quantity& quantity) {
        double value = 0;
        read(in, place, value);
        quantity.value = in.is_null() ? std::nullopt : std::optional(value);
    }

    template <typename T>
    static void read_value(const json& in, const Place& place, T& value) {
        if constexpr (requires { value.record_values(); }) {
            for_each_field(value, Reader(in, place));
        } else {
            read(in, place, value);
        }
    }

    template <typename T>
    static void read_value(const json& in, const Place& place, std::vector<T>& values) {
        if (!in.is_array()) place.fail("a list", in);
        values.resize(in.size());
        for (std::size_t index = 0; index < in.size(); ++index) {
            read_value(in[index], place.index(index), values[index]);
        }
    }

    const json& member(const std::string& key) const {
        const auto found = object_.find(key);
        if (found == object_.end()) place_.key(key).fail("a value", "nothing");
        return *found;
    }

    const json& object_;
    Place place_;
};

/// Returns the text of `document`, in one line if `indent` is -1. Replaces invalid UTF-8, which
/// host and file names may contain.
std::string text_of(const ordered_json& document, int indent) {
    return document.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

ordered_json number_or_null(const Quantity& quantity) {
    return reason_of(quantity).empty() ? ordered_json(*quantity.value) : ordered_json(nullptr);
}

template <typename Record>
std::string to_json(const Record& record) {
    Writer writer(requires { Record::has_whole_numbers; });
    for_each_field(record, writer);
    return text_of(writer.take(), 2) + "\n";
}

template <typename Record>
std::string to_json_line(const Record& record) {
    Writer writer(false);
    for_each_field(record, writer);
    return text_of(writer.take(), -1);
}

template <typename Record>
Record from_json(std::string_view text, std::string_view name) {
    const json in = storage::parse_strict_json(text, name);
    const Place place(name);
    Record record;
    const json schema = in.is_object() ? in.value("schema", json()) : json();
    if (schema != record.schema)
        place.key("schema").fail(fmt::format("\"{}\"", record.schema), schema);
    for_each_field(record, Reader(in, place));
    check(record, place);
    return record;
}

std::string environment_to_json(const std::map<std::string, std::string>& environment) {
    return text_of(ordered_json(environment), 2) + "\n";
}

template std::string to_json(const RunRecord&);
template RunRecord from_json(std::string_view, std::string_view);
template std::string to_json(const GroupResult&);
template GroupResult from_json(std::string_view, std::string_view);
template std::string to_json(const LaunchRecord&);
template LaunchRecord from_json(std::string_view, std::string_view);
template std::string to_json(const ProgressRecord&);
template ProgressRecord from_json(std::string_view, std::string_view);
template std::string to_json(const CheckpointMarker&);
template CheckpointMarker from_json(std::string_view, std::string_view);
template std::string to_json(const FlightRecord&);
template FlightRecord from_json(std::string_view, std::string_view);
template std::string to_json(const RepetitionsRecord&);
template RepetitionsRecord from_json(std::string_view, std::string_view);
template std::string to_json(const RooflineRecord&);
template RooflineRecord from_json(std::string_view, std::string_view);
template std::string to_json(const PlanRecord&);
template std::string to_json(const SweepRecord&);
template std::string to_json_line(const ProposedTrial&);
template ProposedTrial from_json(std::string_view, std::string_view);
template std::string to_json_line(const FinishedTrial&);
template FinishedTrial from_json(std::string_view, std::string_view);

}  // namespace hpcai::records
