// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/config/config.hpp>

/// Estimates before a run: arithmetic on the configuration, without MPI or a device.
namespace hpcai::prediction {

/// Returns the output of `hpcai500 flops`. Each node of the configured model has one line: its
/// output, parameters, activation bytes, and FLOPs of one sample by pass in the three ledgers. The
/// totals follow. Activations are in training.precision; `auto` counts as fp32, because no device
/// is queried.
std::string flops_table(const config::Config& config);

/// Returns the same as JSON, schema "hpcai500-flops/1", with all FLOPs and bytes as exact integers.
std::string flops_json(const config::Config& config);

}  // namespace hpcai::prediction
