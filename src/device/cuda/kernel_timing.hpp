// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "context.hpp"

namespace hpcai::device::cuda {

/// Median seconds of the forward and backward passes of some of Convolution, BatchNorm,
/// NormConvolution and DualNorm, one behind the other, on memory of their own. None when there is
/// not enough.
std::optional<double> seconds_of(const std::vector<ops::Operation>& operations,
                                 const KernelOptions& options, const Context& context);

/// Whether they run at all, once forward and backward, on memory of their own.
bool runs(const std::vector<ops::Operation>& operations, const KernelOptions& options,
          const Context& context);

}  // namespace hpcai::device::cuda
