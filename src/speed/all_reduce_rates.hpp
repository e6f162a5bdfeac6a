// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/records/roofline_record.hpp>

#include "operation_rates.hpp"

namespace hpcai::speed {

/// Ranks that sum together.
struct SummingRanks {
    std::string scope;  // as in AllReduceRate
    comm::Communicator& group;
    comm::GradientReducer& reducer;
};

/// Measures sums of 4 KiB to 64 MiB per rank within about `seconds` and returns the times of the
/// slowest ranks. Collective over all ranks of `meter`, each with its own group.
std::vector<AllReduceRate> measure_all_reduce(RateMeter& meter, const SummingRanks& ranks,
                                              double seconds);

/// Fits a line through the times of the smallest and the largest sum of `rates`, which are in that
/// order. Empty for fewer than two sizes, or if the larger sum does not take longer.
AllReduceFit fit(const std::vector<AllReduceRate>& rates, const std::string& backend);

}  // namespace hpcai::speed
