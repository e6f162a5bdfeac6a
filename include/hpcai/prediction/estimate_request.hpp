// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <hpcai/config/interconnect.hpp>
#include <hpcai/records/roofline_record.hpp>

namespace hpcai::prediction {

/// What `hpcai500 plan` is asked. Rates are the user's own, or of a machine that was measured.
struct EstimateRequest {
    int ranks = 1;
    std::optional<int> ranks_per_node;                 // absent: one group's ranks
    std::optional<std::int64_t> samples;               // found in the training folder
    std::optional<double> bytes_per_sample;            // likewise, of the files
    std::optional<double> flops_per_rank;              // FLOP/s sustained in training, table3
    std::optional<double> watts_per_rank;              // while training
    std::optional<RooflineRecord> roofline;            // in place of flops_per_rank
    std::optional<config::Interconnect> interconnect;  // in place of the roofline's sums
};

}  // namespace hpcai::prediction
