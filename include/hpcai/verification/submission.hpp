// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/config/config.hpp>
#include <hpcai/records/run_record.hpp>

namespace hpcai::verification {

/// Who hands the result in and the nine layers of the system, as the configuration's section
/// `submission` tells, and which of its keys a ranking needs but lacks: all but `contact`. What
/// has blanks only is lacking.
SubmissionRecord describe_submission(const config::Config& config);

/// Why a VALID run is not rankable, with the keys that are lacking; empty where none is, and at
/// run.level custom, which nobody ranks.
std::string what_submission_lacks(const config::Config& config);

}  // namespace hpcai::verification
