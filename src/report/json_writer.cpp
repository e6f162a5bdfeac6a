// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <nlohmann/json.hpp>

#include <hpcai/report/flight.hpp>
#include <hpcai/report/json.hpp>
#include <hpcai/report/launch.hpp>
#include <hpcai/report/progress.hpp>
#include <hpcai/report/repetitions.hpp>
#include <hpcai/report/summary.hpp>

#include "flight_fields.hpp"
#include "launch_fields.hpp"
#include "progress_fields.hpp"
#include "repetitions_fields.hpp"

namespace hpcai::report {
namespace {

using nlohmann::ordered_json;

constexpr const char* kNotFinite = "not a finite number";

std::string reason_of(const Quantity& quantity) {
    if (quantity.value) return std::isfinite(*quantity.value) ? "" : kNotFinite;
    return quantity.reason.empty() ? "not measured" : quantity.reason;
}

ordered_json number_or_null(const Quantity& quantity) {
    return reason_of(quantity).empty() ? ordered_json(*quantity.value) : ordered_json(nullptr);
}

/// Adds one struct's keys to a JSON object.
class Writer {
public:
    template <typename T>
    void operator()(const std::string& key, const T& value) {
        object_[key] = json_of(value);
    }

    void operator()(const std::string& key, double value) { (*this)(key, Quantity{value, {}}); }

    void operator()(const std::string& key, const Quantity& quantity) {
        object_[key] = number_or_null(quantity);
        if (object_[key].is_null()) object_[key + "_reason"] = reason_of(quantity);
    }

    void operator()(const std::string& key, const std::vector<Quantity>& quantities) {
        ordered_json values = ordered_json::array();
        ordered_json reasons = ordered_json::array();
        bool complete = true;
        for (const Quantity& quantity : quantities) {
            values.push_back(number_or_null(quantity));
            reasons.push_back(reason_of(quantity));
            complete = complete && reason_of(quantity).empty();
        }
        object_[key] = std::move(values);
        if (!complete) object_[key + "_reason"] = std::move(reasons);
    }

    void operator()(const std::string& key, const std::vector<double>& values) {
        std::vector<Quantity> quantities;
        for (const double value : values) quantities.push_back({value, {}});
        (*this)(key, quantities);
    }

    ordered_json take() { return std::move(object_); }

private:
    template <typename T>
    static ordered_json json_of(const T& value) {
        if constexpr (std::is_same_v<T, Status> || std::is_same_v<T, ProgressState>) {
            return word_of(value);
        } else if constexpr (std::is_same_v<T, ExitCode>) {
            return static_cast<int>(value);
        } else if constexpr (requires(Writer & fields) { describe(fields, value); }) {
            Writer inner;
            describe(inner, value);
            return inner.take();
        } else {
            return value;
        }
    }

    template <typename T>
    static ordered_json json_of(const std::vector<T>& values) {
        ordered_json list = ordered_json::array();
        for (const T& value : values) list.push_back(json_of(value));
        return list;
    }

    ordered_json object_ = ordered_json::object();
};

}  // namespace

namespace {

template <typename Record>
std::string text_of(const Record& record) {
    Writer fields;
    describe(fields, record);
    // Host and file names need not be UTF-8.
    return fields.take().dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string to_json(const RunRecord& record) {
    return text_of(record);
}

std::string to_json(const GroupResult& result) {
    return text_of(result);
}

std::string environment_to_json(const std::map<std::string, std::string>& environment) {
    return ordered_json(environment).dump(2, ' ', false, ordered_json::error_handler_t::replace) +
           "\n";
}

std::string to_json(const RooflineRecord& record) {
    return text_of(record);
}

std::string to_json(const RepetitionsRecord& record) {
    return text_of(record);
}

std::string to_json(const LaunchRecord& launch) {
    return text_of(launch);
}

std::string to_json(const ProgressRecord& progress) {
    return text_of(progress);
}

std::string to_json(const FlightRecord& record) {
    return text_of(record);
}

}  // namespace hpcai::report
