// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include <hpcai/base/error.hpp>

namespace hpcai {

/// The median of `values`: the mean of the two middle ones if their number is even. There must be
/// at least one value, and none may be NaN.
inline double median(std::vector<double> values) {
    ensure(!values.empty(), "median of no values");
    const auto middle = values.begin() + std::ssize(values) / 2;
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace hpcai
