// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <hpcai/graph/graph.hpp>

namespace hpcai::graph {

/// The costs of running the nodes of a graph, in FLOPs or another additive unit.
struct StageCosts {
    std::vector<double> nodes;      // [node]
    std::vector<double> positions;  // [position] of a cut before node `position`, for each of the
                                    // two adjacent stages; infinite where no cut is possible
    std::vector<int> trained;       // [node] trained parameters; a stage needs at least one
};

/// Returns the first nodes of all stages but the first, ascending. It minimizes the cost of the
/// most expensive stage, then the total cost of the cuts, then the position of the last cut, of the
/// one before, and so on. Empty if there is no solution. Time grows with stages x nodes^2.
std::vector<std::size_t> balance(const StageCosts& costs, int stages);

/// A contiguous range of nodes of a model or of a Part, which some ranks of a pipeline compute.
struct Stage {
    /// Its nodes under their names, with the parameters and statistics that they use. Values that
    /// earlier stages make and this or later stages read are received. Values that later stages
    /// read are outputs, in the same order. A value that passes through the stage is both.
    Graph graph;
    std::vector<ParameterId> parameters;   // [of `graph`] index in the model
    std::vector<std::int32_t> statistics;  // [of `graph`] index in the model
    std::size_t first_node = 0;
    std::size_t nodes = 0;
};

/// The costs of a graph: FLOPs of training by table3 and, for each byte of activations and
/// gradients that crosses a cut, the FLOPs that a CPU rank does in the time of the transfer. Bytes
/// are those of fp32 in every precision, so that a model always has the same stages. No cut
/// separates the users of a parameter or of an input.
StageCosts stage_costs(const Graph& graph);

/// Bytes of the values that cross a cut before node `position`, in one direction, with a compute
/// type of `element_bytes`.
std::int64_t crossing_bytes(const Graph& graph, std::size_t position, int element_bytes);

/// Divides the model into `stages` balanced stages. Throws Error(usage), naming
/// parallel.pipeline_degree and the largest possible number, when there are fewer.
std::vector<Stage> partition_stages(const Graph& graph, int stages);

/// Returns the first nodes of these stages except the first. Throws likewise.
std::vector<std::size_t> stage_ends(const Graph& graph, int stages);

/// Divides `graph` into stages that begin at its first node and at these nodes.
std::vector<Stage> partition_at(const Graph& graph, std::vector<std::size_t> ends);

}  // namespace hpcai::graph
