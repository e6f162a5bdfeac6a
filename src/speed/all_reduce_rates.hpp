// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/base/roofline_record.hpp>
#include <hpcai/group/make_gradient_reducer.hpp>

#include "operation_rates.hpp"

namespace hpcai::speed {

/// Ranks that sum together.
struct SummingRanks {
    std::string scope;  // as in AllReduceRate
    comm::Communicator& group;
    comm::GradientReducer& reducer;
};

/// Times of sums of 4 KiB to 64 MiB on each rank, within about `seconds`: of the ranks that are
/// slowest. Collective over all ranks of `meter`, each with a group of its own.
std::vector<AllReduceRate> measure_all_reduce(RateMeter& meter, const SummingRanks& ranks,
                                              double seconds);

/// The line through the times of the fewest and the most bytes, by which `rates` are in order. None
/// of fewer than two sizes, or where the larger does not take longer.
AllReduceFit fit(const std::vector<AllReduceRate>& rates, const std::string& backend);

}  // namespace hpcai::speed
