// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/prediction/estimate.hpp>

namespace hpcai::prediction {

/// Numbers of ranks: `first`, twice that and so on, and `last`.
struct SweepRange {
    int first = 1;
    int last = 1;
};

/// Bagging, base models of bagging.P_degree ranks (1 where that is auto) as many as there are ranks
/// for, against one data-parallel model on all ranks; each rank has the samples a step that it has
/// in the configured batch. `request`, whose ranks do not matter, has a roofline. What cannot be
/// laid out or predicted is empty and says why. Throws Error(usage) for a range that is none.
SweepRecord sweep(const config::Config& config, const EstimateRequest& request,
                  const SweepRange& range);

/// A table for people.
std::string to_text(const SweepRecord& sweep);

}  // namespace hpcai::prediction
