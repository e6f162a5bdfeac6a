// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <hpcai/records/json.hpp>

namespace hpcai::speed {

/// Makes the JSON of a report's record. A number that is missing is null, and "<key>_reason" has
/// the reason. nlohmann::json finds this function by its name.
template <typename Record>
requires requires(Record record) {
    record.record_values();
}
void to_json(nlohmann::ordered_json& json, const Record& record) {
    for_each_field(record, [&](const std::string& key, const auto& value) {
        if constexpr (std::is_same_v<decltype(value), const Quantity&>) {
            json[key] = records::number_or_null(value);
            if (!value.value) json[key + "_reason"] = value.reason;
        } else {
            json[key] = value;
        }
    });
}

}  // namespace hpcai::speed
