// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <hpcai/device/step_scalars.hpp>

/// What ends a training step on the CPU; Device says what each does.
namespace hpcai::device::cpu {

void check_finite(std::span<const float> values, StepScalars& numbers);
void finish_step(const LossScalePolicy& policy, StepScalars& numbers);

}  // namespace hpcai::device::cpu
