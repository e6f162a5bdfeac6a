// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <hpcai/base/launch_record.hpp>

namespace hpcai::report {

/// Where a result directory has it.
inline constexpr const char* kLaunchName = "launch.json";

/// The text of `launch.json`; as to_json of a RunRecord.
std::string to_json(const LaunchRecord& launch);

/// The record in such a text; `name` stands in messages. Throws Error(data) as from_json of a
/// RunRecord does, and where ranks, groups and places do not fit each other.
LaunchRecord launch_from_json(std::string_view text, std::string_view name);

}  // namespace hpcai::report
