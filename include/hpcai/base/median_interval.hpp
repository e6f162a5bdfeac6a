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

/// Returns two positions, counted from 1, in an ascending list of `count` independent values. The
/// values at these positions enclose the median of any continuous distribution with a probability
/// of at least 95 %. The positions are l and count + 1 - l. l is the largest integer with
/// P(X < l) <= 2.5 %, where X has the binomial distribution of `count` trials with p = 1/2. Returns
/// nothing below 6 values, which have no such l. Throws Error(internal) above 1000 values.
std::optional<std::pair<int, int>> median_positions(int count);

/// Returns the median of `values` and its bounds, the values at median_positions(). Throws
/// Error(internal) if there are no values or more than 1000. No value may be NaN.
MedianInterval median_interval(std::vector<double> values);

}  // namespace hpcai
