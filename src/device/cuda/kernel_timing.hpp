// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "context.hpp"

namespace hpcai::device::cuda {

/// Median seconds of the forward and backward passes of some of Convolution, BatchNorm,
/// NormConvolution and DualNorm, one after the other, in temporary memory. Empty when there is too
/// little memory. Both functions throw when the device is unusable afterwards.
std::optional<double> seconds_of(const std::vector<ops::Operation>& operations,
                                 const KernelOptions& options, const Context& context);

/// Whether one forward and one backward pass of them succeed, in temporary memory.
bool runs(const std::vector<ops::Operation>& operations, const KernelOptions& options,
          const Context& context);

}  // namespace hpcai::device::cuda
