// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hpcai::ops {

/// The numbers of a training step that live in device memory, so that a recorded step reads them
/// anew each time it runs. The host writes learning_rate and micro_batch and clears loss_sum; steps
/// do the rest.
struct StepScalars {
    float learning_rate = 0;
    float loss_scale = 1;          // the gradients of the row losses are multiplied by it
    float gradient_factor = 1;     // gradients times this are those of the loss that is minimized
    std::uint32_t finite = 1;      // 0: this step's gradients have an infinity or a NaN
    std::uint32_t good_steps = 0;  // since the loss scale changed or a step was skipped
    std::uint32_t skipped_steps = 0;  // since the start
    std::uint32_t taken_steps = 0;    // since the start
    std::uint32_t micro_batch = 0;    // of the step, whose backward pass runs; the host writes it
    double loss_sum = 0;              // of the rows' losses since the host cleared it
};

/// How the loss scale moves: PyTorch's GradScaler with factors 2 and 1/2.
struct LossScalePolicy {
    bool dynamic = false;  // false: it stays what it is
    std::uint32_t good_steps_to_double = 2000;
    float smallest = 1;
    float largest = 16777216;
    float loss_weight = 1;  // of a row loss in the loss that is minimized: 1 / batch size
};

}  // namespace hpcai::ops
