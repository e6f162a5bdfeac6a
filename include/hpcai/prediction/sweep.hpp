// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/prediction/estimate.hpp>

namespace hpcai::prediction {

/// Numbers of ranks: `first`, doubled repeatedly, and `last`.
struct SweepRange {
    int first = 1;
    int last = 1;
};

/// Predicts the speed of bagging and of one data-parallel model at each number of ranks. Bagging
/// has as many base models of bagging.P_degree ranks (1 if that is auto) as fit. A rank has as many
/// samples per step as in the configured batch. `request` must have a roofline; its ranks are
/// ignored. A value that cannot be laid out or predicted is empty and has a reason. Throws
/// Error(usage) for an invalid range.
SweepRecord sweep(const config::Config& config, const EstimateRequest& request,
                  const SweepRange& range);

/// Formats the sweep as a table.
std::string to_text(const SweepRecord& sweep);

}  // namespace hpcai::prediction
