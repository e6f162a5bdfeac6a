// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <hpcai/base/run_record.hpp>

namespace hpcai::report {

/// The text of `result.json`: the record key by key in the order of its structs, indented by two
/// spaces. A number that is not there, or not finite, is null, with the reason in "<key>_reason".
std::string to_json(const RunRecord& record);

/// The record in the text of a `result.json`; `name` stands in messages. Unknown keys are ignored.
/// Throws Error(data) naming the key and what came for another schema, a key that is missing, of
/// another type or out of range, a status with an exit code it never has, and lists of groups of
/// different length.
RunRecord from_json(std::string_view text, std::string_view name = "result.json");

/// The same for `groups/<m>/record.json`.
std::string to_json(const GroupResult& result);
GroupResult group_from_json(std::string_view text, std::string_view name = "record.json");

/// The text of `environment.json`.
std::string environment_to_json(const std::map<std::string, std::string>& environment);

/// The same for a roofline file; numbers that must be above 0 and are not are out of range, too.
std::string to_json(const RooflineRecord& record);
RooflineRecord roofline_from_json(std::string_view text, std::string_view name);

}  // namespace hpcai::report
