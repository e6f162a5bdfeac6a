// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "device/cuda/cudnn_graphs.hpp"

/// What tests ask of the library that tests/simt/cudnn.cpp stands in for.
namespace hpcai::simt {

/// From now on every plan of this pass fails when it is executed, as those may that only a device
/// shows to be unfit; none does without one.
void let_fail(std::optional<device::cuda::ConvolutionPass> pass);

}  // namespace hpcai::simt
