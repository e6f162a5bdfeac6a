// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <hpcai/base/flight_record.hpp>

namespace hpcai::report {

/// The text of `groups/<m>/flight/rank-<r>.json`; as to_json of a RunRecord.
std::string to_json(const FlightRecord& record);

/// The record in such a text; `name` stands in messages. Throws Error(data) as from_json of a
/// RunRecord does.
FlightRecord flight_from_json(std::string_view text, std::string_view name);

/// Of ranks that all answered: who has come least far, and where it is, such as
/// "rank 1 (world rank 3 on node02, process 4711) is in forward of step 12, 63.0 s behind its last
/// step; 3 others are farther". Control characters of texts are escaped. Empty for no records.
std::string describe_laggards(std::span<const FlightRecord> records);

}  // namespace hpcai::report
