// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/ops/step_scalars.hpp>

#include "stream.hpp"

namespace hpcai::kernels {

/// Clears numbers->finite where any of gradients (count), at a multiple of 16 bytes, is infinite or
/// NaN. With gradients that are sums over ranks, every rank comes to the same answer.
void check_finite(const float* gradients, std::int64_t count, ops::StepScalars* numbers,
                  Stream stream);

/// Ends a step. After finite gradients one more step is taken and good, and after enough of them
/// the scale doubles unless it would pass `largest`; otherwise the step counts as skipped and the
/// scale halves, not below `smallest`. gradient_factor = loss_weight / loss_scale, finite = 1.
void update_loss_scale(const ops::LossScalePolicy& policy, ops::StepScalars* numbers,
                       Stream stream);

}  // namespace hpcai::kernels
