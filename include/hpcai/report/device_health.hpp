// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/records/run_record.hpp>

namespace hpcai::report {

/// Errors that invalidate training on this GPU: "2 uncorrected memory errors, Xid 79, Xid 94".
/// Empty if there are none.
std::string errors_text(const DeviceHealthRecord& health);

/// "hw_thermal_slowdown in 41 % of the samples" (polls); empty if the clocks were never lowered.
std::string slowdown_text(const DeviceHealthRecord& health);

/// Lines of the summary: the GPUs with errors, then the slowed ones by decreasing share. Long lists
/// end with the number of further GPUs.
std::vector<std::string> health_lines(const RunRecord& record);

}  // namespace hpcai::report
