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

struct EstimateRequest;

/// The number format of computation, as far as it is known without a device.
struct ComputePrecision {
    std::string name;        // "fp32"
    std::int64_t bytes = 4;  // of an element of an activation
    bool assumed = false;    // training.precision is `auto`; the larger format is assumed
    bool int8 = false;       // see ops::computes_in_int8
    /// Returns the format of activations.
    std::string values() const { return int8 ? "fp32" : name; }
};

ComputePrecision compute_precision(const config::Config& config);

/// Returns the bytes of a value of the graph as it is stored. Outputs of Linear and the loss are
/// fp32 in every precision, pixels uint8, labels int32.
std::int64_t value_bytes(const graph::Graph& graph, graph::ValueId value,
                         const ComputePrecision& precision);

/// The training graph for one sample, and its division into stages and shards.
struct ModelParts {
    graph::Graph whole;
    std::vector<graph::Stage> stages;  // the last shard of each stage, which is the largest
    std::vector<int> in_flight;        // [stage] micro-batches in flight
    // [stage] the maximum of each number over the shards; values are in the compute type
    std::vector<graph::ExchangedBytes> exchanged;
};

/// Throws like graph::partition_stages and graph::shard.
ModelParts cut_model(const config::Config& config, const plan::Layout& layout);

/// Returns the memory of a rank of the stage that needs the most; fullest_node_bytes is not set.
/// `exchange` [stage] has the bytes of message and all-reduce buffers of a rank.
PlanMemoryRecord estimate_memory(const config::Config& config, const plan::Layout& layout,
                                 const ModelParts& parts, const std::vector<double>& exchange,
                                 const Quantity& training_samples);

PlanParallelRecord estimate_parallel(const config::Config& config, const plan::Layout& layout,
                                     const ModelParts& parts);

/// Returns, for each stage, the bytes of the BatchNorm statistics that ranks exchange in a step.
std::vector<double> statistics_bytes(const plan::Layout& layout, const ModelParts& parts);

/// Returns, for each stage, the bytes of a rank's buffers for exchange with other shards: the
/// largest exchange of a micro-batch of `samples` samples, and samples that the first shard sends.
std::vector<double> part_buffer_bytes(const plan::Layout& layout, const ModelParts& parts,
                                      int samples);

/// Estimates staging of the training samples; `samples` is their number in the data set.
PlanStagingRecord estimate_staging(const config::Config& config, const EstimateRequest& request,
                                   const plan::LayoutSummary& layout, const Quantity& samples);

/// Predicts the times of a step from request.roofline, which must be present, and
/// request.interconnect. `plan` must be complete except for its times; assumptions are added to it.
/// docs/METRICS.md has the formulas.
PlanTimeRecord predict_step(const config::Config& config, const EstimateRequest& request,
                            const plan::Layout& layout, PlanRecord& plan);

}  // namespace hpcai::prediction
