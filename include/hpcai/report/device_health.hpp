// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/records/run_record.hpp>

namespace hpcai::report {

/// "2 uncorrected memory errors, Xid 79, Xid 94": what makes a training on this GPU worth nothing;
/// empty where there is nothing of it.
std::string errors_text(const DeviceHealthRecord& health);

/// "hw_thermal_slowdown in 41 % of the looks"; empty where the clocks were never lowered.
std::string slowdown_text(const DeviceHealthRecord& health);

/// Lines of the summary: the GPUs with errors, then the slowed ones, the worst first; of many the
/// first few and how many more there are.
std::vector<std::string> health_lines(const RunRecord& record);

}  // namespace hpcai::report
