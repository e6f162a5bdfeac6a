// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <hpcai/config/config.hpp>

namespace hpcai::training {

/// Returns the learning rate of a step, counted from 0.
using Schedule = std::function<double(std::int64_t step)>;

Schedule constant(double rate);
/// Multiplies `rate` by `factor` at each of `steps` (PyTorch's MultiStepLR; Goyal et al. 2017: 0.1
/// at epochs 30, 60 and 80).
Schedule step_decay(double rate, double factor, std::vector<std::int64_t> steps);
/// Decays from `rate` at step `first` to `final_rate` at step `last` along half a cosine, then
/// stays there (Loshchilov and Hutter 2017, eq. 5, one cycle; PyTorch's CosineAnnealingLR with
/// T_max `last` - `first`, whose rate then rises again). The last step of a run is `last` - 1.
Schedule cosine_decay(double rate, double final_rate, std::int64_t first, std::int64_t last);
/// Decays from `rate` to `final_rate` along (1 - progress)^power, progress from 0 at `first` to 1
/// at `last` (PyTorch's PolynomialLR with total_iters `last` - `first`, whose final rate is 0).
Schedule polynomial_decay(double rate, double final_rate, double power, std::int64_t first,
                          std::int64_t last);
/// Linear warmup before `schedule`: step s < `steps` has the fraction `start` + (1 - `start`)
/// (s + 1) / `steps` of the rate of `schedule` at step `steps` (Goyal et al. 2017, section 2.2).
/// The fraction would be `start` one step before step 0, and is 1 in the last warmup step.
/// PyTorch's LinearLR has the same rates with start_factor `start` + (1 - `start`) / `steps` and
/// total_iters `steps` - 1.
Schedule warmup(Schedule schedule, double start, std::int64_t steps);

/// Returns the configured schedule for a model with `steps_per_epoch` steps per epoch. Peak and
/// final rate are the configured rates x batch_size / learning_rate_batch (linear scaling rule).
Schedule make_schedule(const config::TrainingConfig& training, int epochs,
                       std::int64_t steps_per_epoch);

}  // namespace hpcai::training
