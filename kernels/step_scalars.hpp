// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/device/step_scalars.hpp>

namespace hpcai::kernels {

using device::LossScalePolicy;
using device::StepScalars;

}  // namespace hpcai::kernels
