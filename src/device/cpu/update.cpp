// SPDX-License-Identifier: Apache-2.0
#include "update.hpp"

#include <algorithm>
#include <cmath>

namespace hpcai::device::cpu {

void check_finite(std::span<const float> values, StepScalars& numbers) {
    const auto count = static_cast<std::int64_t>(values.size());
    bool all = true;
#pragma omp parallel for schedule(static) reduction(&& : all)
    for (std::int64_t i = 0; i < count; ++i) {
        all = all && std::isfinite(values[i]);
    }
    if (!all) numbers.finite = 0;
}

void finish_step(const LossScalePolicy& policy, StepScalars& numbers) {
    const bool good = numbers.finite != 0;
    numbers.good_steps = good ? numbers.good_steps + 1 : 0;
    numbers.skipped_steps += good ? 0 : 1;
    numbers.taken_steps += good ? 1 : 0;
    if (policy.dynamic && !good) {
        numbers.loss_scale = std::max(numbers.loss_scale / 2, policy.smallest);
    } else if (policy.dynamic && numbers.good_steps >= policy.good_steps_to_double) {
        numbers.good_steps = 0;
        if (numbers.loss_scale * 2 <= policy.largest) numbers.loss_scale *= 2;
    }
    numbers.gradient_factor = policy.loss_weight / numbers.loss_scale;
    numbers.finite = 1;
}

}  // namespace hpcai::device::cpu
