// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/config/config.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/prediction/estimate_request.hpp>
#include <hpcai/records/plan_record.hpp>

namespace hpcai::prediction {

/// Predicts the times of a step from request.roofline, which is there, and request.interconnect.
/// `plan` has all but its times; what is assumed is added to it. docs/METRICS.md has the formulas.
PlanTimeRecord predict_step(const config::Config& config, const EstimateRequest& request,
                            const plan::Layout& layout, PlanRecord& plan);

}  // namespace hpcai::prediction
