// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/config/config.hpp>
#include <hpcai/graph/shard.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/records/plan_record.hpp>

namespace hpcai::prediction {

struct EstimateRequest;

/// The number format of computation, as far as the configuration determines it.
struct ComputePrecision {
    std::string name;        // "fp32"
    std::int64_t bytes = 4;  // per element of an activation
    bool assumed = false;    // fp32, because precision is auto and device.kind is not cuda
    bool int8 = false;       // see ops::computes_in_int8
    std::string activation_format() const { return int8 ? "fp32" : name; }
};

ComputePrecision compute_precision(const config::Config& config);

/// Returns the bytes of a value of the graph in memory. They do not depend on `precision` if the
/// value has a type of its own (Value::dtype), such as logits, pixels and labels.
std::int64_t value_bytes(const graph::Graph& graph, graph::ValueId value,
                         const ComputePrecision& precision);

/// The training graph for one sample, and its partition into stages and shards.
struct ModelShards {
    graph::Graph model;
    std::vector<graph::Stage> stages;  // [stage] its last shard, which is the largest
    std::vector<int> in_flight;        // [stage] micro-batches in flight
    // [stage] each number is the maximum over the stage's shards, for values in the compute type
    std::vector<graph::ExchangedBytes> exchanged;
};

/// Throws as graph::partition_stages and graph::shard do.
ModelShards shard_model(const config::Config& config, const plan::Layout& layout);

/// Returns the ranks of the roofline's fullest node; empty if no node had several ranks. A plan
/// then assumes P_degree ranks on each node.
std::optional<int> measured_ranks_per_node(const EstimateRequest& request);

/// Returns the memory of a rank of the stage that needs the most, without fullest_node_bytes.
/// `exchange` has the bytes of a rank's buffers for messages, shards and all-reduces, [stage].
PlanMemoryRecord estimate_memory(const config::Config& config, const plan::Layout& layout,
                                 const ModelShards& partition, const std::vector<double>& exchange,
                                 const Quantity& training_samples);

PlanParallelRecord estimate_parallel(const config::Config& config, const plan::Layout& layout,
                                     const ModelShards& partition);

/// Returns the bytes of the BatchNorm statistics that ranks exchange in a step, [stage].
std::vector<double> statistics_bytes(const plan::Layout& layout, const ModelShards& partition);

/// Returns the bytes of a rank's buffers for exchange with other shards, [stage]: for the largest
/// exchange in a micro-batch of `samples` samples, and for inputs, which the first shard sends.
std::vector<double> shard_buffer_bytes(const plan::Layout& layout, const ModelShards& partition,
                                       int samples);

/// Estimates the staging of training samples; `samples` is the size of the training set.
PlanStagingRecord estimate_staging(const config::Config& config, const EstimateRequest& request,
                                   const plan::LayoutSummary& layout, const Quantity& samples);

/// Predicts the times of a step from request.roofline, which must be present, and
/// request.machine. `plan` must be complete except for its times; the prediction's assumptions are
/// added to it. docs/METRICS.md has the formulas.
PlanTimeRecord predict_step(const config::Config& config, const EstimateRequest& request,
                            const plan::Layout& layout, PlanRecord& plan);

}  // namespace hpcai::prediction
