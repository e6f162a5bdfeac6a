// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <hpcai/device/device.hpp>

#include "context.hpp"

namespace hpcai::device::cpu {

/// See Device::build.
std::unique_ptr<Update> build_update(const Optimizer& optimizer, const OptimizerTensors& tensors,
                                     const Context& context);

}  // namespace hpcai::device::cpu
