// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/config/config.hpp>

/// What can be known of a run before it: arithmetic on the configuration, no MPI, no device.
namespace hpcai::prediction {

/// What `hpcai500 flops` prints: one line per node of the configured model with its output,
/// parameters, activation bytes and FLOPs of one sample by pass in the three ledgers, then the
/// totals. Activations are in training.precision; `auto` is taken as fp32, as no device is asked.
std::string flops_table(const config::Config& config);

/// The same as JSON, schema "hpcai500-flops/1": all FLOPs and bytes as exact integers.
std::string flops_json(const config::Config& config);

}  // namespace hpcai::prediction
