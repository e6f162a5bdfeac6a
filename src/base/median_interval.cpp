// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/base/error.hpp>
#include <hpcai/base/median.hpp>
#include <hpcai/base/median_interval.hpp>

namespace hpcai {

std::optional<std::pair<int, int>> median_positions(int count) {
    // From 1023 values on, 0.5^count would be a denormal number or 0.
    ensure(count <= 1000, "the interval of a median needs at most 1000 values, got {}", count);
    constexpr double kMaxTail = 0.025;  // of B, the number of values below the true median
    int lower = 0;
    double term = std::pow(0.5, count), tail = term;  // P(B = lower), P(B <= lower)
    while (2 * lower < count && tail <= kMaxTail) {
        term *= static_cast<double>(count - lower) / (lower + 1);
        tail += term;
        ++lower;
    }
    if (lower == 0) return std::nullopt;
    return std::pair(lower, count + 1 - lower);
}

MedianInterval median_interval(std::vector<double> values) {
    std::ranges::sort(values);
    MedianInterval interval{.median = hpcai::median(values), .bounds = std::nullopt};
    if (const auto positions = median_positions(static_cast<int>(values.size()))) {
        interval.bounds = {values[static_cast<std::size_t>(positions->first) - 1],
                           values[static_cast<std::size_t>(positions->second) - 1]};
    }
    return interval;
}

}  // namespace hpcai
