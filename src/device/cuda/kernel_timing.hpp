// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "context.hpp"

namespace hpcai::device::cuda {

/// Median seconds of one forward and one backward pass through `operations` in temporary memory.
/// Supports Convolution, BatchNorm, NormConvolution and DualNorm. Empty when a pass fails, for
/// example for lack of memory. Both functions throw when the device is unusable afterwards.
std::optional<double> seconds_of(const std::vector<ops::Operation>& operations,
                                 const KernelOptions& options, const Context& context);

/// Whether one forward and one backward pass through `operations` succeed.
bool runs(const std::vector<ops::Operation>& operations, const KernelOptions& options,
          const Context& context);

}  // namespace hpcai::device::cuda
