// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "context.hpp"

namespace hpcai::device::cuda {

/// Throws Error(internal) for an `exchange`, buffers of different lengths, and ranges out of order,
/// outside the buffers or not from a multiple of 8.
std::unique_ptr<Update> build_update(const Optimizer& optimizer, const OptimizerTensors& tensors,
                                     const Context& context, Device& device);

}  // namespace hpcai::device::cuda
