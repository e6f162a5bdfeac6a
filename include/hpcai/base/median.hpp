// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace hpcai {

/// The middle one of `values` in ascending order; the mean of the two in the middle where their
/// number is even. There is at least one, and none is NaN.
double median(std::vector<double> values);

}  // namespace hpcai
