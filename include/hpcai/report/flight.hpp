// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include <hpcai/records/flight_record.hpp>

namespace hpcai::report {

/// Describes the ranks with the least progress: "rank 1 (world rank 3 on node02, process 4711) is
/// in forward of step 12, 63.0 s after its last step; 3 others are ahead". Control characters in
/// texts are escaped. Empty for no records.
std::string describe_laggards(std::span<const FlightRecord> records);

}  // namespace hpcai::report
