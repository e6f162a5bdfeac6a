// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace hpcai::ops {

/// The scalars of a training step, in device memory so that each launch of a CUDA graph reads them.
/// The host initializes all fields, writes learning_rate and
/// micro_batch, clears loss_sum, and clears `finite` if another stage skips the step. The step adds
/// to loss_sum and writes the rest.
struct StepScalars {
    float learning_rate = 0;
    float loss_scale = 1;             // factor of the gradients of the samples' losses
    float gradient_factor = 1;        // scales computed gradients to those of the minimized loss
    std::uint32_t finite = 1;         // 0: the gradients have an infinity or a NaN
    std::uint32_t good_steps = 0;     // since the last skipped step or attempt to double the scale
    std::uint32_t skipped_steps = 0;  // since the start
    std::uint32_t taken_steps = 0;    // since the start
    std::uint32_t micro_batch = 0;    // index in the step, for the backward pass
    double loss_sum = 0;              // of the samples' losses since the host cleared it
};

/// The rule by which the loss scale changes: that of PyTorch's GradScaler with factors 2 and 1/2.
struct LossScalePolicy {
    bool dynamic = false;  // false: the scale is constant
    std::uint32_t good_steps_to_double = 2000;
    float min_scale = 1;  // limits of StepScalars::loss_scale
    float max_scale = 16777216;
    float loss_weight = 1;  // of a sample's loss in the minimized loss: 1 / training.batch_size
};

}  // namespace hpcai::ops
