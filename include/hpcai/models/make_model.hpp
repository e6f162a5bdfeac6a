// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/config/config.hpp>
#include <hpcai/graph/graph.hpp>

namespace hpcai::models {

/// The configured model for `batch` samples at a time on one rank, normalizations sharing
/// statistics over `statistics_samples` of them (0: all). The graph is not fused.
graph::Graph make_model(const config::Config& config, std::int64_t batch,
                        std::int64_t statistics_samples = 0);

}  // namespace hpcai::models
