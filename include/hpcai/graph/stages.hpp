// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/graph/graph.hpp>

namespace hpcai::graph {

/// The costs of running the nodes of a graph, in FLOPs or another additive unit.
struct StageCosts {
    std::vector<double> nodes;  // [node]
    // [node] cost of a cut before the node, added to both stages; infinite: no cut is possible
    std::vector<double> cuts;
    std::vector<int> trained;  // [node] number of trained parameters; a stage needs one or more
};

/// Returns the cuts: the first nodes of all stages after the first. Empty for one stage, or if
/// there is no solution. The cuts minimize the cost of the most expensive stage, then the sum of
/// cut costs. Ties: the earliest last cut, then the earliest cut before. O(stages x nodes^2) time.
std::vector<std::size_t> balance(const StageCosts& costs, int stages);

/// A pipeline stage: a contiguous range of nodes of a model or of a Shard.
struct Stage {
    /// The nodes of the stage with their parameters and statistics. A value that an earlier stage
    /// computes and this or a later stage reads is an input (Value::is_received). A value that a
    /// later stage reads is an output; a value that only passes through is both. Outputs have the
    /// order of the next stage's inputs.
    Graph graph;
    std::vector<ParameterId> parameters;   // [parameter of `graph`] its index in the model
    std::vector<std::int32_t> statistics;  // [statistics of `graph`] their index in the model
    std::size_t first_node = 0;            // index in the model or Shard
    std::size_t nodes = 0;                 // number of nodes
};

/// The costs of a graph: FLOPs of training by ops::Ledger::table3 and, for each byte of activations
/// and gradients that crosses a cut, the FLOPs that a CPU core performs during its transfer. Bytes
/// are counted in fp32, so that the stages do not depend on the precision. No cut separates the
/// nodes that read the same parameter or input.
StageCosts stage_costs(const Graph& graph);

/// Bytes of the values that cross a cut before node `position` in the forward pass if the compute
/// type has `element_bytes`.
std::int64_t crossing_bytes(const Graph& graph, std::size_t position, int element_bytes);

/// Divides the model into `stages` balanced stages. Throws Error(usage), naming
/// parallel.pipeline_degree and its largest possible value, if `stages` exceeds that.
std::vector<Stage> partition_stages(const Graph& graph, int stages);

/// Returns the cuts of partition_stages(), as balance() does. Throws like partition_stages().
std::vector<std::size_t> stage_cuts(const Graph& graph, int stages);

/// Divides `graph` into stages that begin at its first node and at the nodes `cuts` (stage_cuts()).
std::vector<Stage> partition_at(const Graph& graph, std::vector<std::size_t> cuts);

}  // namespace hpcai::graph
