// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/device/step_numbers.hpp>

namespace hpcai::kernels {

using device::LossScalePolicy;
using device::StepNumbers;

}  // namespace hpcai::kernels
