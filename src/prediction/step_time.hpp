// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/prediction/estimate_parts.hpp>

namespace hpcai::prediction {

/// Of a step of one base model, from what was measured elsewhere.
struct StepTime {
    Quantity compute_seconds;        // with the pipeline's bubble
    Quantity communication_seconds;  // of all sums and messages
    Quantity exposed_seconds;        // of these, behind no computation
    Quantity step_seconds;
    std::vector<std::string> assumptions;
};

/// Predicts from request.roofline, which is there, and request.interconnect; `estimate` has all but
/// its times. docs/METRICS.md has the formulas.
StepTime predict_step(const config::Config& config, const EstimateRequest& request,
                      const Estimate& estimate);

}  // namespace hpcai::prediction
