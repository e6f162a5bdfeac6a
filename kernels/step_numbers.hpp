// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hpcai::kernels {

/// The numbers of a training step that live in device memory, so that a captured step reads them
/// anew each time it runs.
struct StepNumbers {
    float learning_rate = 0;
    float loss_scale = 1;          // the gradients of the row losses are multiplied by it
    float gradient_factor = 1;     // gradients times this are those of the loss that is minimized
    std::uint32_t finite = 1;      // 0: this step's gradients have an infinity or a NaN
    std::uint32_t good_steps = 0;  // since the loss scale changed or a step was skipped
    std::uint32_t skipped_steps = 0;  // since the start
};

}  // namespace hpcai::kernels
