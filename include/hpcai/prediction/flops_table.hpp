// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/config/config.hpp>

/// Estimates before a run: arithmetic on the configuration, without MPI or a device.
namespace hpcai::prediction {

/// Returns the output of `hpcai500 flops`: two lines for each node of the configured model, with
/// its output shape, parameters, activation bytes, and FLOPs of one sample by pass in the three
/// ledgers; then the totals. Activations are in training.precision; `auto` is taken as fp32,
/// because no device is queried.
std::string flops_table(const config::Config& config);

/// Returns the same as JSON, schema "hpcai500-flops/1", with all FLOPs and bytes as exact integers.
std::string flops_json(const config::Config& config);

}  // namespace hpcai::prediction
