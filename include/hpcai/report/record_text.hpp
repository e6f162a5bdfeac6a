// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include <hpcai/records/flight_record.hpp>
#include <hpcai/records/roofline_record.hpp>
#include <hpcai/records/run_record.hpp>

/// Records as text. Control characters in their texts are escaped or become spaces.
namespace hpcai::report {

/// Describes up to four of the ranks with the least progress: "rank 1 (world rank 3 on node02,
/// process 4711) is in forward of step 12, 63.0 s after its last step; ahead of that: 3 of 4
/// ranks". Empty if there are no records.
std::string describe_laggards(std::span<const FlightRecord> records);

/// The least number of runs with which a result of problem class mini is ranked (docs/RULES.md).
inline constexpr int kMiniRuns = 3;

/// "image_classification", or "image_classification-mini" in problem class mini.
std::string problem_name(const WorkloadRecord& workload);

/// The fmt format of a penalty coefficient: four significant digits, without a point at the end.
std::string_view penalty_format(const Quantity& penalty);

/// The machine, each measured operation with a line per pass, bandwidths, all-reduces and training
/// steps. wrap() breaks the lines.
std::string roofline_text(const RooflineRecord& record);

/// Errors that invalidate training on this GPU: "2 uncorrected memory errors, Xid 79, Xid 94"; at
/// most four Xids. Empty if there are none.
std::string errors_text(const DeviceHealthRecord& health);

}  // namespace hpcai::report
