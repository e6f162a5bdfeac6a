// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>
#include <vector>

namespace hpcai {

/// The median of repeated measurements and its confidence interval.
struct MedianInterval {
    double median = 0;
    std::optional<std::pair<double, double>> bounds;  // absent below 6 values
};

/// Returns the ranks, from 1, of the two order statistics of `count` independent values that
/// enclose the median of their distribution with a probability of at least 95 %, for any continuous
/// distribution: the closest ranks l and count + 1 - l with binomial P(X < l) <= 2.5 % for p = 1/2.
/// Returns nothing below 6 values, for which there are no such ranks. Throws Error(internal) above
/// 1000 values.
std::optional<std::pair<int, int>> median_ranks(int count);

/// Returns the median of `values` and the order statistics of median_ranks(). Throws
/// Error(internal) if there are no values or more than 1000. No value may be NaN.
MedianInterval median_interval(std::vector<double> values);

}  // namespace hpcai
