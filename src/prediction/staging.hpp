// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/config/config.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/prediction/estimate_request.hpp>
#include <hpcai/records/plan_record.hpp>

namespace hpcai::prediction {

/// Of training samples; `samples` is their number in the data set.
PlanStagingRecord estimate_staging(const config::Config& config, const EstimateRequest& request,
                                   const plan::LayoutSummary& layout, const Quantity& samples);

}  // namespace hpcai::prediction
