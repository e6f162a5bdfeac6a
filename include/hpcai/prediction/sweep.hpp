// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/prediction/estimate.hpp>

namespace hpcai::prediction {

/// Numbers of ranks: `first` times powers of two below `last`, and `last`.
struct SweepRange {
    int first = 1;
    int last = 1;
};

/// Predicts the speed of bagging and of one data-parallel model for each number of ranks. In
/// bagging, each base model has bagging.P_degree ranks (1 for auto). Each rank computes
/// training.batch_size / P_degree samples per step. `request` must have a roofline; request.ranks
/// is ignored. A value is absent, with a reason, if no layout has that number of ranks or the speed
/// is unknown. Throws Error(usage) for an invalid range.
SweepRecord sweep(const config::Config& config, const EstimateRequest& request,
                  const SweepRange& range);

/// Formats the sweep as a table.
std::string to_text(const SweepRecord& sweep);

}  // namespace hpcai::prediction
