// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/base/error.hpp>
#include <hpcai/base/median.hpp>
#include <hpcai/base/median_interval.hpp>

namespace hpcai {

std::optional<std::pair<int, int>> median_ranks(int count) {
    // From 1023 values on, 0.5^count would be a denormal number or 0.
    ensure(count <= 1000, "ranks of the median of {} values", count);
    constexpr double kTail = 0.025;
    int rank = 0;
    double tail = std::pow(0.5, count), term = tail;  // tail: P(X <= rank)
    while (2 * rank < count && tail <= kTail) {
        term *= static_cast<double>(count - rank) / (rank + 1);
        tail += term;
        ++rank;
    }
    if (rank == 0) return std::nullopt;
    return std::pair(rank, count + 1 - rank);
}

MedianInterval median_interval(std::vector<double> values) {
    std::ranges::sort(values);
    MedianInterval interval{.median = hpcai::median(values), .bounds = std::nullopt};
    if (const auto ranks = median_ranks(static_cast<int>(values.size()))) {
        interval.bounds = {values[static_cast<std::size_t>(ranks->first) - 1],
                           values[static_cast<std::size_t>(ranks->second) - 1]};
    }
    return interval;
}

}  // namespace hpcai
