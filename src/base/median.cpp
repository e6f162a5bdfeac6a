// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>

#include <hpcai/base/error.hpp>
#include <hpcai/base/median.hpp>

namespace hpcai {

double median(std::vector<double> values) {
    ensure(!values.empty(), "median of no values");
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace hpcai
