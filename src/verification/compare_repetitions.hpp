// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/records/repetitions_record.hpp>
#include <hpcai/verification/comparison.hpp>

namespace hpcai::verification {

/// Judges anew, by the spread of their runs, what two series of repetitions both have; the numbers
/// become their medians. Other `metrics` stay as they are.
void compare_repetitions(const RepetitionsRecord& first, const RepetitionsRecord& second,
                         std::vector<MetricComparison>& metrics);

}  // namespace hpcai::verification
