// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/ops/step_scalars.hpp>

#include "stream.hpp"

namespace hpcai::kernels {

/// Clears numbers->finite if any of gradients (count), which are 16-byte aligned, is infinite or
/// NaN. If the gradients are sums over ranks, all ranks get the same result.
void check_finite(const float* gradients, std::int64_t count, ops::StepScalars* numbers,
                  Stream stream);

/// Ends a step; see Device::finish_step.
void update_loss_scale(const ops::LossScalePolicy& policy, ops::StepScalars* numbers,
                       Stream stream);

}  // namespace hpcai::kernels
