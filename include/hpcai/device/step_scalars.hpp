// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/step_scalars.hpp>

namespace hpcai::device {

using ops::LossScalePolicy;
using ops::StepScalars;

}  // namespace hpcai::device
