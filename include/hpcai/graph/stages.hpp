// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <hpcai/graph/graph.hpp>

namespace hpcai::graph {

/// What it costs to run the nodes of a graph, in FLOPs or whatever else adds up.
struct StageCosts {
    std::vector<double> nodes;      // [node]
    std::vector<double> positions;  // [position] of a cut in front of node `position`, for each of
                                    // the two stages beside it; infinite where there can be none
    std::vector<int> trained;       // [node] trained parameters, of which a stage has one or more
};

/// The first nodes of all stages but the first, ascending: of all ways to cut the nodes into so
/// many ranges the one whose most expensive stage is cheapest; among these the one whose cuts cost
/// least together; among these the one with the earliest last cut, then the one before, and so on.
/// Empty, too, where there is no way. Time grows with stages x nodes^2.
std::vector<std::size_t> balance(const StageCosts& costs, int stages);

/// A contiguous part of a model, or of what Part has of it, which some ranks of a pipeline compute.
struct Stage {
    /// Its nodes under their names, with the parameters and statistics that they use. Values that
    /// stages before it make and it or those behind it read are received; those that stages behind
    /// it read are outputs, in the same order: what goes past it is both.
    Graph graph;
    std::vector<ParameterId> parameters;   // [of `graph`] of the model
    std::vector<std::int32_t> statistics;  // [of `graph`] of the model
    std::size_t first_node = 0;
    std::size_t nodes = 0;
};

/// FLOPs of training by table3, and for each byte of activations and their gradients that crosses a
/// cut so many FLOPs as a rank of a CPU does meanwhile. Bytes are those of fp32 in every precision,
/// so that a model has the same stages wherever it is cut. No cut parts what a parameter or an
/// input of the graph is used by.
StageCosts stage_costs(const Graph& graph);

/// Bytes of the values that cross a cut in front of node `position`, in one direction, in a network
/// of a type of `element_bytes`.
std::int64_t crossing_bytes(const Graph& graph, std::size_t position, int element_bytes);

/// The model in `stages` balanced stages. Throws Error(usage), naming parallel.pipeline_degree and
/// how many there can be, when there cannot be so many.
std::vector<Stage> cut(const Graph& graph, int stages);

/// The first nodes of all those stages but the first. Throws likewise.
std::vector<std::size_t> stage_ends(const Graph& graph, int stages);

/// `graph` in stages that begin at its first node and at these.
std::vector<Stage> cut_at(const Graph& graph, std::vector<std::size_t> ends);

}  // namespace hpcai::graph
