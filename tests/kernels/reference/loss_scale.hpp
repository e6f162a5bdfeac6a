// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/loss_scale.hpp"

namespace hpcai::kernels::reference {

inline void check_finite(const float* gradients, std::int64_t count, ops::StepScalars* numbers,
                         Stream) {
    const bool all =
        std::all_of(gradients, gradients + count, [](float value) { return std::isfinite(value); });
    if (!all) numbers->finite = 0;
}

inline void update_loss_scale(const ops::LossScalePolicy& policy, ops::StepScalars* numbers,
                              Stream) {
    const bool good = numbers->finite != 0;
    numbers->good_steps = good ? numbers->good_steps + 1 : 0;
    numbers->skipped_steps += good ? 0 : 1;
    numbers->taken_steps += good ? 1 : 0;
    if (policy.dynamic && !good) {
        numbers->loss_scale = std::max(numbers->loss_scale / 2, policy.smallest);
    } else if (policy.dynamic && numbers->good_steps >= policy.good_steps_to_double) {
        numbers->good_steps = 0;
        if (numbers->loss_scale * 2 <= policy.largest) numbers->loss_scale *= 2;
    }
    numbers->gradient_factor = policy.loss_weight / numbers->loss_scale;
    numbers->finite = 1;
}

}  // namespace hpcai::kernels::reference
