// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include <hpcai/device/device.hpp>

#include "context.hpp"

/// What ends a training step on the CPU; Device says what each does.
namespace hpcai::device::cpu {

std::unique_ptr<Update> build_sgd(const Sgd& sgd, const SgdTensors& tensors,
                                  const Context& context);
void check_finite(std::span<const float> values, StepNumbers& numbers);
void finish_step(const LossScalePolicy& policy, StepNumbers& numbers);

}  // namespace hpcai::device::cpu
