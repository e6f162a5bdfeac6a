// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/prediction/estimate_parts.hpp>

namespace hpcai::prediction {

/// Of training samples; `samples` is their number in the data set.
StagingEstimate estimate_staging(const config::Config& config, const EstimateRequest& request,
                                 const plan::LayoutSummary& layout, const Quantity& samples);

}  // namespace hpcai::prediction
