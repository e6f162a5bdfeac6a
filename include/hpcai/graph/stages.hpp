// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <hpcai/graph/graph.hpp>

namespace hpcai::graph {

/// The costs of running the nodes of a graph, in FLOPs or another additive unit.
struct StageCosts {
    std::vector<double> nodes;  // [node]
    // [node] cost of a cut before it, for each of the two adjacent stages; infinite: no cut there
    std::vector<double> cuts;
    std::vector<int> trained;  // [node] number of trained parameters; a stage needs one or more
};

/// Returns the first nodes of all stages but the first, ascending; empty for one stage and without
/// a solution. Minimizes the cost of the most expensive stage, then the total cost of the cuts.
/// Ties go to the earliest last cut, then to the earliest cut before it. Time: O(stages x nodes^2).
std::vector<std::size_t> balance(const StageCosts& costs, int stages);

/// A pipeline stage: a contiguous range of nodes of a model or of a Shard.
struct Stage {
    /// Its nodes under their names, with the parameters and statistics that they use. Values that
    /// earlier stages make and this or later stages read are received. Values that later stages
    /// read are outputs, ordered as the next stage receives them. A passed-through value is both.
    Graph graph;
    std::vector<ParameterId> parameters;   // [of `graph`] index in the model
    std::vector<std::int32_t> statistics;  // [of `graph`] index in the model
    std::size_t first_node = 0;
    std::size_t nodes = 0;
};

/// The costs of a graph: FLOPs of training by ops::Ledger::table3 and, for each byte of activations
/// and gradients that crosses a cut, the FLOPs that a CPU rank does in the time of the transfer.
/// Bytes are those of fp32 in every precision, so that a model always has the same stages. No cut
/// separates the users of a parameter or of an input.
StageCosts stage_costs(const Graph& graph);

/// Bytes of the values that cross a cut before node `position` in the forward pass. An element of
/// the compute type has `element_bytes` bytes.
std::int64_t crossing_bytes(const Graph& graph, std::size_t position, int element_bytes);

/// Divides the model into `stages` balanced stages. Throws Error(usage), naming
/// parallel.pipeline_degree and the largest possible number, when the model has fewer.
std::vector<Stage> partition_stages(const Graph& graph, int stages);

/// Returns the first node of each stage of partition_stages() except the first. Throws likewise.
std::vector<std::size_t> stage_cuts(const Graph& graph, int stages);

/// Divides `graph` into stages that begin at its first node and at the nodes `ends` (stage_cuts()).
std::vector<Stage> partition_at(const Graph& graph, std::vector<std::size_t> ends);

}  // namespace hpcai::graph
