// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/config/config.hpp>
#include <hpcai/prediction/estimate_request.hpp>
#include <hpcai/records/plan_record.hpp>

namespace hpcai::prediction {

/// The dry run of `config` on as many ranks, numbered node by node.
/// Throws Error(launch) when eq. 5 cannot hold (plan::make_layout), Error(usage) for numbers of
/// `request` that are out of range. 100,000 ranks take well under a second.
PlanRecord estimate(const config::Config& config, const EstimateRequest& request);

/// The plan for people: sections of aligned lines, then what was assumed.
std::string to_text(const PlanRecord& plan);

}  // namespace hpcai::prediction
