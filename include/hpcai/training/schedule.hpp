// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <hpcai/config/config.hpp>

namespace hpcai::training {

/// Returns the learning rate of a step, counted from 0.
using Schedule = std::function<double(std::int64_t step)>;

/// Returns the configured schedule for a model with `steps_per_epoch` steps per epoch. Peak and
/// final rate are the configured rates x batch_size / learning_rate_batch (linear scaling rule).
///
/// The first w = warmup_epochs x `steps_per_epoch` steps (rounded) are the warm-up: step s has the
/// fraction a + (1 - a) * (s + 1) / w of the rate of step w, where a is warmup_start (Goyal et al.
/// 2017, section 2.2). PyTorch's LinearLR has the same rates with start_factor a + (1 - a) / w and
/// total_iters w - 1. The steps from w on have these rates, where p rises linearly from 0 at step w
/// to 1 at the end of the run:
/// * constant: the peak rate
/// * step: the peak rate, multiplied by schedule_factor at schedule_epochs (PyTorch's MultiStepLR)
/// * cosine: final + (peak - final) * (1 + cos(pi * p)) / 2 (Loshchilov and Hutter 2017, eq. 5, one
///   cycle; PyTorch's CosineAnnealingLR, whose rate rises again after the end)
/// * polynomial: final + (peak - final) * (1 - p)^schedule_power (PyTorch's PolynomialLR, final 0)
Schedule make_schedule(const config::TrainingConfig& training, int epochs,
                       std::int64_t steps_per_epoch);

}  // namespace hpcai::training
