// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <hpcai/config/config.hpp>
#include <hpcai/graph/graph.hpp>
#include <hpcai/prediction/estimate.hpp>

namespace hpcai::prediction {

/// The number format of computation, as far as it is known without a device.
struct ComputePrecision {
    std::string name;        // "fp32"
    std::int64_t bytes = 4;  // of an activation
    bool assumed = false;    // training.precision is `auto`: the larger format is taken
    bool int8 = false;       // see ops::computes_in_int8
    /// Of activations.
    std::string values() const { return int8 ? "fp32" : name; }
};

ComputePrecision compute_precision(const config::Config& config);

/// Bytes of a value while it is kept: outputs of Linear and the loss are fp32 in every precision,
/// pixels uint8, labels int32.
std::int64_t value_bytes(const graph::Graph& graph, graph::ValueId value,
                         const ComputePrecision& precision);

/// Memory of a rank that works on `samples` samples at a time.
MemoryEstimate estimate_memory(const config::Config& config, int samples);

}  // namespace hpcai::prediction
