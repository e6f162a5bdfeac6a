// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/config/config.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::prediction {

/// Refuses what no device could run of `config` in `layout`, which make_layout() made of it: the
/// same for a plan and for a run. Throws Error(usage), naming the key, where device.kind cuda is to
/// compute parts, nccl is to carry BatchNorm statistics, a BatchNorm has one value of each channel
/// to take statistics of, or the model cannot be cut into so many stages and parts, or not in int8.
void check_model(const config::Config& config, const plan::Layout& layout);

}  // namespace hpcai::prediction
