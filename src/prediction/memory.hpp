// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/graph/shard.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/records/plan_record.hpp>

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

/// The model for one sample as it is trained, and what its ranks hold of it.
struct ModelParts {
    graph::Graph whole;
    std::vector<graph::Stage> stages;  // one or more; of the last part, which is the largest
    std::vector<int> in_flight;        // [stage] micro-batches
    // [stage] of the parts of which each number is largest; in the compute type
    std::vector<graph::ExchangedBytes> exchanged;
};

/// Throws as graph::partition_stages and graph::shard.
ModelParts cut_model(const config::Config& config, const plan::Layout& layout);

/// Memory of a rank of the stage that takes most, but for fullest_node_bytes; `exchange` [stage]
/// are the bytes of its messages.
PlanMemoryRecord estimate_memory(const config::Config& config, const plan::Layout& layout,
                                 const ModelParts& parts, const std::vector<double>& exchange,
                                 const Quantity& training_samples);

PlanParallelRecord estimate_parallel(const config::Config& config, const plan::Layout& layout,
                                     const ModelParts& parts);

/// [stage] Bytes of the BatchNorm statistics of a step, where ranks take them together.
std::vector<double> statistics_bytes(const plan::Layout& layout, const ModelParts& parts);

/// [stage] Bytes of what parts exchange at a time, and of samples handed on, by `samples` of a
/// micro-batch.
std::vector<double> part_buffer_bytes(const plan::Layout& layout, const ModelParts& parts,
                                      int samples);

}  // namespace hpcai::prediction
