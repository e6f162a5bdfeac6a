// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace hpcai {

/// The median of `values`: the mean of the two middle ones if their number is even. There must be
/// at least one value, and none may be NaN.
double median(std::vector<double> values);

}  // namespace hpcai
