// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <hpcai/device/step_numbers.hpp>

/// What ends a training step on the CPU; Device says what each does.
namespace hpcai::device::cpu {

void check_finite(std::span<const float> values, StepNumbers& numbers);
void finish_step(const LossScalePolicy& policy, StepNumbers& numbers);

}  // namespace hpcai::device::cpu
