// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/prediction/estimate_parts.hpp>

namespace hpcai::prediction {

/// The dry run of `config` on as many ranks, numbered node by node. What cannot be known without
/// inventing a number is empty and says why.
/// Throws Error(launch) when eq. 5 cannot hold (plan::make_layout), Error(usage) for numbers of
/// `request` that are out of range. 100,000 ranks take well under a second.
Estimate estimate(const config::Config& config, const EstimateRequest& request);

/// The estimate for people: sections of aligned lines, then what was assumed.
std::string to_text(const Estimate& estimate);

/// Schema "hpcai500-plan/1"; an unknown number is null with its reason under "<key>_reason".
std::string to_json(const Estimate& estimate);

}  // namespace hpcai::prediction
