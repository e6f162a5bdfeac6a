// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "context.hpp"

namespace hpcai::device::cuda {

/// Throws Error(internal) for buffers of different lengths and ranges that are not in them.
std::unique_ptr<Update> build_sgd(const Sgd& sgd, const SgdTensors& tensors, const Context& context,
                                  Device& device);

}  // namespace hpcai::device::cuda
