// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <hpcai/base/error.hpp>

namespace hpcai {

/// Returns the median of `values`; for an even number of values, the mean of the two middle ones.
/// Throws Error(internal) if there are no values. No value may be NaN.
inline double median(std::vector<double> values) {
    ensure(!values.empty(), "median of no values");
    const auto middle = values.begin() + std::ssize(values) / 2;
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace hpcai
