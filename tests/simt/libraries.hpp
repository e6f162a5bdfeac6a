// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "device/cuda/cudnn_graphs.hpp"

/// Controls of the cuDNN emulation in tests/simt/cudnn.cpp, for tests.
namespace hpcai::simt {

/// Makes all further executions of plans of this pass fail, like plans that fail on a real device
/// only; no pass: none fails.
void let_fail(std::optional<device::cuda::ConvolutionPass> pass);

}  // namespace hpcai::simt
